// Opening a file that a user names: whatever stands at the path, it is refused at once or read to
// its end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace scalemark {

/// Why there is no text: "no such file", "a pipe, not a regular file", "larger than 1 MiB", ...
/// without the path, which the reader of the file puts before it.
struct InputFault : std::runtime_error {
  InputFault(bool is_missing, const std::string& what)
      : std::runtime_error(what), missing(is_missing) {}
  bool missing;  ///< nothing is there: the command is wrong, not the file
};

/// Limits: of what a person writes, and of what a program does (the record of a million steps has
/// 20 MiB).
inline constexpr std::size_t kLargestText = 1 << 20, kLargestRecord = 32 << 20;

/// The content of a regular file of at most `most_bytes`. Pipes, devices, sockets and folders are
/// refused unread: the first two may never end. Throws InputFault.
std::string read_input_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace scalemark
