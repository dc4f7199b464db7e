// What `gate --history` prints: says what the history record says.
#pragma once

#include <string>

#include "result/records.hpp"

namespace scalemark {

/// A line a set, changes marked where they begin, and what they are. Ends with a newline.
std::string history_table(const Json& history_record);
/// The same as Markdown.
std::string history_markdown(const Json& history_record);

}  // namespace scalemark
