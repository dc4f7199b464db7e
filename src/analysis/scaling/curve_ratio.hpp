// Two curves of one launch side by side: pure functions of their records.
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
  /// Student's t on the log ratios of round k of both; nullopt for one repeat, or where the numbers
  /// of repeats differ.
  std::optional<Interval> ci95;
};

/// At the rank counts that both scaling records have, ascending. Both must have status "ok".
std::vector<CurveRatio> curve_ratios(const Json& curve, const Json& reference);

}  // namespace scalemark
