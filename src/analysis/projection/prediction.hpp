// One step at one rank count over all draws of a fit.
#pragma once

#include "analysis/projection/projection.hpp"

namespace scalemark {

/// What of the network is asked for instead of what was measured.
struct NetworkChange {
  std::optional<double> link_gbit, link_latency_seconds;
  std::optional<std::int64_t> ranks_per_node;
};

struct PredictedStep {
  Predicted seconds;
  StepCost parts;  ///< mean of the draws around the middle; sums to it
};

/// Median over the draws, beyond the fitted points leaning on the trend of the curve by its share:
/// of the measured network and batch alone, of others the curve shows nothing. The band adds what
/// no parameter holds: launches that differ, what the model misses of the fitted points, how far
/// trend and model are apart, and the tuned drift for every doubling beyond the largest fitted
/// point.
PredictedStep predict(const ModelFit& fit, const NetworkChange& change, const StepWork& work,
                      std::int64_t ranks);

/// Published curves go up to this multiple of the ranks that were fitted.
inline constexpr std::int64_t kFarthestTrend = 16;

}  // namespace scalemark
