// What `compare` prints: says what the comparison record says.
#pragma once

#include <string>

#include "result/records.hpp"

namespace scalemark {

/// A table of points for each metric and each set against the first one, and below what the columns
/// are, points that only some sets have, notes and warnings. What came from records is shown().
/// Ends with a newline.
std::string comparison_table(const Json& comparison_record);

/// The same as Markdown.
std::string comparison_markdown(const Json& comparison_record);

}  // namespace scalemark
