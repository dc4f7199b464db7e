// What a curve needs of a run record.
#pragma once

#include <string>

#include "analysis/scaling/scaling.hpp"

namespace scalemark {

/// `run` must have status "ok". `path`: of the run record, relative to the curve. `resource`: what
/// is counted.
PointRepeat point_repeat(const Json& run, const std::string& path, bool baseline,
                         Resource resource = Resource::rank);

}  // namespace scalemark
