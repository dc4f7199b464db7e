// Identity of configurations.
#pragma once

#include <string>
#include <string_view>

namespace scalemark {

/// SHA-256 in hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace scalemark
