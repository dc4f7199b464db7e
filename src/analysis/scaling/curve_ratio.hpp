// Two curves of one launch or one sweep side by side: pure functions of their records.
#pragma once

#include <optional>
#include <vector>

#include "measure/statistics.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Throughput of a curve over that of another one, at one rank count.
struct CurveRatio {
  int ranks = 1;
  double ratio = 0;
  /// Student's t on the log ratios of round or repeat k of both; nullopt for one repeat, or where
  /// one has repeats that the other lacks.
  std::optional<Interval> ci95;
};

/// At the rank counts that both scaling records have, ascending. Both must have status "ok".
std::vector<CurveRatio> curve_ratios(const Json& curve, const Json& reference);

}  // namespace scalemark
