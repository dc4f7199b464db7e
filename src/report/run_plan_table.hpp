// What --dry_run prints.
#pragma once

#include <string>
#include <vector>

#include "analysis/run_plan.hpp"

namespace scalemark {

/// A table a curve with a line a point, and what its columns mean.
std::string run_plan_table(const std::vector<CurvePlan>& plans);

}  // namespace scalemark
