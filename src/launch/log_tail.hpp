// What a launch said last.
#pragma once

#include <filesystem>
#include <string>

namespace scalemark {

/// The last lines of a log that are neither empty nor mpirun's boilerplate, at most 3 and 600
/// characters, on one line. Empty where there is none.
std::string last_lines(const std::filesystem::path& log);

}  // namespace scalemark
