// What a curve shows without a cost model: constant efficiency, bent by the loss per doubling of
// the ranks that its own points show. A nearly linear curve leans on it; docs/projection.md.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/projection/measured_curve.hpp"
#include "analysis/projection/tuned_constants.hpp"

namespace scalemark {

struct CurveTrend {
  double shown_loss = 0;         ///< of the step for each doubling of the ranks, relative
  double loss_per_doubling = 0;  ///< the part of it that so many doublings make believable
  double share = 0;              ///< of the trend in a prediction, beside the cost model: 0 to 1
  double last_step_seconds = 0;  ///< at the largest fitted point
  double batch_per_rank = 0;     ///< samples; it says nothing of others
  std::int64_t most_ranks = 1;   ///< largest fitted
  double bend = 0;
};

/// Of points in ascending ranks, at least two. Its share is 0 where ranks do unlike work (strong
/// scaling, several batches): there efficiency has to change. It falls with the loss, as
/// exp(-(loss / 12 %)^4).
CurveTrend curve_trend(const std::vector<CurvePoint>& points, Scaling scaling, bool link_known,
                       const TunedConstants& constants);

/// last (1 + g (D + bend D²)), D doublings beyond the largest fitted point.
double trend_seconds(const CurveTrend& trend, std::int64_t ranks);

/// Whether the batches of the ranks differ between points.
bool has_unlike_batches(const std::vector<CurvePoint>& points);

}  // namespace scalemark
