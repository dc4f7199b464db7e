// What `scalemark instances` tells a person: formats what the record says.
#pragma once

#include <string>

#include "result/records.hpp"

namespace scalemark {

/// A line a point, then a line for every instance of every point: rates and latencies alone and
/// with neighbours; what the columns mean; points that failed, and the warnings (`told`: see
/// warning_lines()). Ends with a newline.
std::string instances_table(const Json& record, std::size_t told = 0);

}  // namespace scalemark
