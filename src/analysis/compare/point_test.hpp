// Two sets at one point: which repeats belong together, and one estimator, the winsorised mean of
// log ratios, that decides estimate, sign, interval and verdict; and whether the launches of a
// sweep show its fastest point. Formulas in docs/measurements.md ("Two sets").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "measure/launch_order.hpp"
#include "measure/permutation.hpp"
#include "record/comparison.hpp"

namespace scalemark {

/// A launch, or a round of one, and what the metric is of it.
struct Repeat {
  const MeasuredLaunch* launch = nullptr;
  std::int64_t number = 0;  ///< of its sweep; else its place in the set at this point, from 1
  double value = 0;
  Work work;  ///< of metrics that are made of it
};
using Repeats = std::vector<Repeat>;

/// throughput, throughput_per_rank, efficiency: a launch of several rounds has a value a round.
bool is_of_work(const std::string& metric);

/// Rounds of curves serve where a set has one launch only.
bool needs_rounds(const std::vector<const MeasuredLaunch*>& a,
                  const std::vector<const MeasuredLaunch*>& b);

/// Returns the repeats of those launches that have the metric (not efficiency); `rounds`: each
/// round of them.
Repeats repeats_of(const std::vector<const MeasuredLaunch*>& launches, const std::string& metric,
                   bool rounds);

/// Efficiency: the rate per rank of each repeat over that of its partner at the smallest point,
/// which is the same repeat of the sweep or the same round of the curve; where launches have no
/// such bond, the one that was launched as the k-th there too. What has no partner is left out.
Repeats efficiencies(const Repeats& throughputs, const Repeats& smallest);

std::vector<double> logs_of(const Repeats& repeats);

/// Returns total units / total seconds (a rank) for throughput, the geometric mean for others.
double value_of(const Repeats& repeats, const std::string& metric);

/// Launches of one sweep by one build lie side by side: every repeat went once through all points.
bool of_one_sweep(const Repeats& a, const Repeats& b);

/// Repeats of both sets with the same number, in its order, and the numbers without a partner.
struct Pairing {
  Repeats base, other;
  std::vector<std::int64_t> base_alone, other_alone;
};
Pairing pair_up(const Repeats& base, const Repeats& other);

/// What two sets measured of one thing, and when: the order of their launches is looked at in it.
struct TimedLogs {
  std::vector<double> base_starts, starts;  ///< in seconds; NaN: not told
  std::vector<double> base, other;          ///< logarithms
  bool paired = false;                      ///< the k-th of both belong together
};
TimedLogs timed_logs(const Repeats& base, const Repeats& other, bool paired);

/// Whether the order of the launches leaves open what a difference of two sets comes from, with
/// sentences on what was seen and what to do.
struct OrderFindings {
  bool confounded = false;
  std::vector<std::string> warnings;
  std::string drift;  ///< empty: no trend makes the difference
};

/// What is looked at: which launch of a pair comes first, what the second one loses, and a trend
/// that makes a difference by itself (measure/launch_order.hpp). `difference`: of the logarithms;
/// one below `least` is none to speak of.
OrderFindings look_at_order(const TimedLogs& logs, double difference, double least,
                            const std::string& base, const std::string& other);

/// Repeats of a set below which no interval is given: docs/coverage.md.
inline constexpr std::size_t kLeastRepeats = 5;

/// What the record says of a point, and beside that what warnings are made of.
struct Difference : record::ComparedPoint {
  std::size_t set_index = 1;    ///< of the other set
  std::size_t point_index = 0;  ///< in the matching
  double mean_percent = 0;      ///< of the bare mean log ratio
  /// The bare mean or Hodges-Lehmann lies further away than half the width of the interval.
  bool estimates_disagree = false;
  bool confounded = false;  ///< with the order of the launches: look_at_order()
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
/// are. `difference`: what set and point it is of, its design and unit of repeats.
PointValues test_point(Difference& difference, const Repeats& base, const Repeats& other,
                       const std::string& metric, const TestQuestions& questions);

/// p adjusted for all differences of a metric (Holm), what could have been found, the verdicts, and
/// why a difference lacks what it lacks.
void judge_points(std::vector<Difference>& differences, const std::vector<PointValues>& values,
                  const Metric& metric, const TestQuestions& questions);

/// Whether the launches of a sweep show which of its points is the fastest.
struct Fastest {
  std::size_t point = 0;  ///< of the largest mean
  /// Faster than each other point, tested as scalemark compare does, at 5 % over all of them
  /// (Bonferroni: which point is tested was chosen by the same launches).
  bool shown = false;
  double p = 1;                    ///< the largest of these tests, times their number, at most 1
  std::size_t as_fast = 0;         ///< other points that may be as fast
  std::size_t repeats_needed = 0;  ///< from which on the launches could show it
  bool too_few = false;            ///< there are not so many
};

/// `points`: throughputs of the launches of each. Those without launches take no part; nullopt
/// where fewer than two do.
std::optional<Fastest> find_fastest(const std::vector<Repeats>& points);

}  // namespace scalemark
