// Reads files that a user names, and parses JSON that this program did not make itself. Whatever is
// at the path, it is refused at once or read to its end. No text may cost more than its size, and
// nothing is silently dropped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "json.hpp"

namespace scalemark {

/// An error that says what is wrong with a text, and where, without the name of its file.
struct JsonFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The limits of nesting, for what a person writes and for what a program writes.
inline constexpr int kDeepestText = 32, kDeepestRecord = 64;

/// Parses a text. Throws JsonFault: malformed (with line and column), not UTF-8, a zero byte, a
/// number beyond double, nested deeper than `deepest`, a key of an object twice, a tree that takes
/// more than 128 MiB of memory (small objects take a multiple of their text). The time is in
/// proportion to the text.
Json parse_json_text(std::string_view text, int deepest);

/// Returns a value as a message shows it: short, ASCII, without control characters.
std::string shown_value(const Json& value);

// The functions below read JSON that a person wrote, with limits, and with messages that name the
// place.

/// Parses an object. Throws ConfigError with `name` and what is wrong: larger than 1 MiB, malformed
/// (with line and column), deeper than 32, not an object, a key of any object in it twice. `what`:
/// "configuration", "plan".
nlohmann::ordered_json parse_json_object(std::string_view text, std::string_view name,
                                         std::string_view what);

/// Returns the text of a regular file of at most 1 MiB. Throws ConfigError where it is not one.
std::string read_json_text(const std::filesystem::path& path, std::string_view what);

/// Returns the JSON object of such a file. Throws ConfigError as the two functions above do.
nlohmann::ordered_json read_json_object(const std::filesystem::path& path, std::string_view what);

/// Returns a JSON pointer (RFC 6901) to a member of the outermost object, safe to print.
std::string pointer_to(const std::string& member);

/// An error that says why there is no text: "no such file", "a pipe, not a regular file", "larger
/// than 1 MiB", ... without the path, which the reader of the file puts before it.
struct InputFault : std::runtime_error {
  InputFault(bool is_missing, const std::string& what)
      : std::runtime_error(what), missing(is_missing) {}
  bool missing;  ///< nothing is there: the command is wrong, not the file
};

/// The limits of size, for what a person writes and for what a program writes (the record of a
/// million steps has 20 MiB).
inline constexpr std::size_t kLargestText = 1 << 20, kLargestRecord = 32 << 20;

/// Returns the content of a regular file of at most `most_bytes`. Pipes, devices, sockets and
/// folders are refused unread, since the first two may never end. Throws InputFault.
std::string read_input_file(const std::filesystem::path& path, std::size_t most_bytes);
/// Does the same, and calls `take` with one part of it after the other, for files that are larger
/// than memory should be.
void read_in_parts(const std::filesystem::path& path, std::size_t most_bytes,
                   const std::function<void(std::string_view part)>& take);

}  // namespace scalemark
