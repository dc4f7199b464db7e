// Two sets at one point: one estimator, the winsorised mean of log ratios, decides estimate, sign,
// interval and verdict. Formulas in docs/measurements.md ("Two sets").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/repeats.hpp"
#include "measure/permutation.hpp"

namespace scalemark {

/// Repeats of a set below which no interval is given: docs/coverage.md.
inline constexpr std::size_t kLeastRepeats = 5;

enum class ComparisonVerdict {
  faster,
  slower,
  lower,
  higher,
  equivalent,
  no_difference_shown,
  too_few
};
/// "no difference shown", "too few launches", ...; of equivalent "equivalent within 2 %".
std::string to_string(ComparisonVerdict verdict, double equivalent_percent = 0);

/// One set against the first one at one point. Percent: 100 (ratio - 1).
struct Difference {
  std::size_t set = 1;    ///< index of the other set
  std::size_t point = 0;  ///< index in the matching
  bool paired = false;
  bool in_process = false;  ///< the repeats are of one launch
  std::string unit;
  std::size_t base_repeats = 0, other_repeats = 0;
  double base_value = 0, other_value = 0;  ///< value_of() each set alone
  double percent = 0;                      ///< of the centre of the log ratios
  double mean_percent = 0;                 ///< of the bare mean log ratio
  double hodges_lehmann_percent = 0;
  /// The bare mean or Hodges-Lehmann lies further away than half the width of the interval.
  bool estimates_disagree = false;
  std::optional<ExactInterval> interval;  ///< in percent
  std::optional<double> p, p_adjusted;    ///< two-sided; none of a single repeat
  std::optional<double> detectable_percent;
  std::size_t repeats_needed = kLeastRepeats;  ///< of each set, for a difference to be shown
  std::optional<double> p_equivalent;          ///< where a margin was asked for
  std::optional<std::size_t> repeats_for_equivalence;  ///< where it is neither nor
  ComparisonVerdict verdict = ComparisonVerdict::too_few;
};

/// What is asked of every point.
struct TestQuestions {
  double alpha = 0.05, power = 0.8;
  std::optional<double> equivalent_percent;  ///< margin to either side
  CountedAssignments assignments = {};       ///< drawn once for all points
};

/// The values behind a difference.
struct PointValues {
  std::vector<double> base, other;  ///< logarithms
  std::vector<double> pairs;        ///< other - base; empty of two samples
};

/// Estimate, test, interval and equivalence of one point, before it is known how many others there
/// are. `difference`: what set and point it is of, and whether paired.
PointValues test_point(Difference& difference, const Repeats& base, const Repeats& other,
                       const std::string& metric, const TestQuestions& questions);

/// p adjusted for all differences of a metric (Holm), what could have been found, and the verdicts.
void judge_points(std::vector<Difference>& differences, const std::vector<PointValues>& values,
                  const Metric& metric, const TestQuestions& questions);

}  // namespace scalemark
