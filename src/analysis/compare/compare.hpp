// Two or more result sets point by point: difference, interval, significance and what could have
// been found. Pure functions; formulas and the design in docs/measurements.md ("Two sets").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "measure/permutation.hpp"

namespace scalemark {

/// Repeats of a set below which no interval is given: docs/coverage.md.
inline constexpr std::size_t kLeastRepeats = 5;

struct CompareQuestions {
  std::string metric = "throughput";  ///< or one of kOtherMetrics
  std::vector<std::string> varied;    ///< keys that may differ between sets
  bool paired = false;                ///< the k-th launches of all sets were measured side by side
  double alpha = 0.05;                ///< of the family of all comparisons
  double power = 0.8;                 ///< of the minimum detectable difference
};

enum class ComparisonVerdict { faster, slower, lower, higher, no_difference_shown, too_few };
/// "no difference shown", "too few launches", ...
std::string to_string(ComparisonVerdict verdict);

/// One set against the first one at one point. Percent: 100 (ratio - 1).
struct Difference {
  std::size_t set = 1;    ///< index of the other set
  std::size_t point = 0;  ///< index in the matching
  bool paired = false;
  bool in_process = false;  ///< the repeats are of one launch
  std::size_t base_repeats = 0, other_repeats = 0;
  double base_value = 0, other_value = 0;  ///< total units / total seconds; of other metrics the
                                           ///< geometric mean
  double percent = 0;                      ///< of the ratio of these
  double hodges_lehmann_percent = 0;
  std::optional<ExactInterval> interval;  ///< in percent
  std::optional<double> p, p_adjusted;    ///< two-sided; none of a single repeat
  std::optional<double> detectable_percent;
  std::size_t repeats_needed = kLeastRepeats;  ///< of each set, for a difference to be shown
  ComparisonVerdict verdict = ComparisonVerdict::too_few;
};

struct Comparison {
  std::vector<Difference> differences;  ///< by set, then point; one where both have launches
  std::vector<std::string> warnings;
};

/// Throws ConfigError where a launch has no such metric, or where --paired sets have unlike numbers
/// of launches at a point.
Comparison compare_sets(const std::vector<ResultSet>& sets, const Matching& matching,
                        const CompareQuestions& questions);

/// The record (kind "comparison", docs/schema/comparison.schema.json).
Json make_comparison_record(const std::vector<ResultSet>& sets, const Matching& matching,
                            const CompareQuestions& questions, const Comparison& comparison);

}  // namespace scalemark
