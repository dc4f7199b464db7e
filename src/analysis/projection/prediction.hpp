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

/// Median over the draws; the band adds what no parameter holds: launches that differ, and, beyond
/// the largest fitted point, kDriftPerDoubling for every doubling of the ranks.
PredictedStep predict(const ModelFit& fit, const NetworkChange& change, const StepWork& work,
                      std::int64_t ranks);

/// Relative deviation of the truth from the model for each doubling beyond the fitted points; from
/// published curves (docs/projection.md).
inline constexpr double kDriftPerDoubling = 0.06;

}  // namespace scalemark
