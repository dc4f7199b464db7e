// Which constants of projections predict published curves best, and how well constants that were
// chosen without a curve do on it: projection_check --leave_one_out, for docs/projection.md.
#pragma once

#include <vector>

#include "analysis/projection/projection.hpp"

namespace scalemark::projection {

/// A curve's errors under constants that were chosen on all other curves.
struct LeftOut {
  const MeasuredCurve* curve = nullptr;
  TunedConstants constants;
  HeldOutErrors errors;
};

struct TuningResult {
  TunedConstants of_all;          ///< chosen on all curves: what src/analysis/projection ships
  std::vector<LeftOut> left_out;  ///< each curve once
};

/// Each curve is fitted to its first half and held against its second. Constants are chosen from a
/// grid by the mean error, in which a curve that falls more than one point behind constant
/// efficiency counts what it lacks fortyfold; the drift is then the smallest whose bands hold 90 %
/// of the points. Two curves at least.
TuningResult tune(const std::vector<MeasuredCurve>& curves);

}  // namespace scalemark::projection
