// Intervals of rates and ratios over repeats.
#pragma once

#include <optional>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark {

/// 95 % interval of the geometric mean of positive values: Student's t on their logarithms, so that
/// ratios and their inverses are treated alike and no bound is negative. nullopt for fewer than
/// two.
std::optional<Interval> log_interval(const std::vector<double>& values);

}  // namespace scalemark
