// The one parser of JSON that this program did not make itself: nothing in it may cost more than
// its size, and nothing is silently dropped.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "json.hpp"

namespace scalemark {

/// What is wrong with a text, and where, without the name of its file.
struct JsonFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Limits of nesting: of what a person writes, and of what a program does.
inline constexpr int kDeepestText = 32, kDeepestRecord = 64;

/// Throws JsonFault: malformed (with line and column), not UTF-8, a zero byte, a number beyond
/// double, nested deeper than `deepest`, a key of an object twice, a tree that takes more than 128
/// MiB of memory (small objects take a multiple of their text). The time is in proportion to the
/// text.
Json parse_json_text(std::string_view text, int deepest);

/// A value as a message shows it: short, ASCII, without control characters.
std::string shown_value(const Json& value);

}  // namespace scalemark
