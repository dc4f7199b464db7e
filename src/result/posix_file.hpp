// Bytes that are on disk before anything relies on them.
#pragma once

#include <string_view>

namespace scalemark {

/// Writes all bytes and waits until they are on disk. 0, or errno of what failed: a full disk may
/// show in either.
int write_all(int file, std::string_view bytes);

}  // namespace scalemark
