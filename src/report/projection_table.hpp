// What `project` prints: says what the projection record says.
#pragma once

#include "result/records.hpp"

namespace scalemark {

/// A table of predictions, what the model is made of, and below what was held against it. Ends with
/// a newline.
std::string projection_table(const Json& projection_record);

/// The same as Markdown.
std::string projection_markdown(const Json& projection_record);

/// Seconds as a person says them: "6.2 h", "31 days", "850 ms".
std::string spoken_seconds(double seconds);

}  // namespace scalemark
