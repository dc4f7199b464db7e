// Intervals of shares: how often a simulated rule was right.
#pragma once

#include <cstdint>

#include "measure/statistics.hpp"

namespace scalemark {

/// Clopper-Pearson interval of a share: quantiles of the beta distribution (Clopper and Pearson
/// 1934). Covers at least `confidence` whatever the share. `trials` above 0.
Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double confidence = 0.95);

}  // namespace scalemark
