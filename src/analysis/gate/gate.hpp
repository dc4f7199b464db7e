// The decision rule of `scalemark gate`: is the new build slower than the base, over all points or
// at one of them? Pairs of launches are measured until it is known or the last look is reached.
// Design and operating characteristics: docs/gate.md.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "measure/joint_permutation.hpp"
#include "measure/shift_answer.hpp"
#include "measure/slow_launches.hpp"
#include "record/comparison.hpp"

namespace scalemark {

struct GateDesign {
  /// The looks for false alarms: with no slowdown, at most the last `spent` of all gates say
  /// "regressed".
  std::vector<SequentialLook> alarm{{8, 0.004}, {10, 0.006}, {14, 0.008}, {20, 0.01}};
  /// The looks for false passes: with a slowdown of `excluded`, at most the last `spent` of all say
  /// "pass".
  std::vector<SequentialLook> pass{{8, 0.02}, {10, 0.03}, {14, 0.04}, {20, 0.05}};
  double threshold = 0.01;       ///< least slowdown that is called a regression (fraction)
  double excluded = 0.02;        ///< mean slowdown that a pass excludes (fraction)
  double excluded_point = 0.10;  ///< slowdown of any one point that a pass excludes (fraction)
  double power = 0.8;            ///< of the minimum detectable slowdown
};

struct GateDecision {
  GateVerdict verdict = GateVerdict::more_pairs;
  std::size_t pairs = 0;        ///< what the decision is based on
  std::size_t next_pairs = 0;   ///< of the next look; 0: there is none
  double slowdown_percent = 0;  ///< 100 (1 - exp(centre of the mean log ratios)), pairs used
  double p = 1;                 ///< one-sided, of mean and points together, for reading
  std::vector<double> point_p;  ///< of each point, adjusted for their number
  std::vector<double> own_p;    ///< of each point, by its own test
  /// Slowdown of the mean that the last look would have found with `power`; unset where so few
  /// launches can't reach the level.
  std::optional<double> detectable_percent;
  /// Repeats of either side with which a gate without a slowdown passes with `power`, at the noise
  /// seen; unset below two.
  std::optional<std::size_t> repeats_for_pass;
  bool can_fail = true;             ///< false: so few launches can't show a regression
  std::vector<std::size_t> open{};  ///< points whose loss of `excluded_point` is not excluded
  /// The last look found a larger share of slow launches in the new set, at half of the alarm's
  /// level, at these points.
  std::vector<std::size_t> slow_points{};
};

/// Looks after 8, 10, 14 and 20 pairs as above, those beyond `pairs` left out and the last one
/// after `pairs`, where all of `alpha` is spent. Throws std::invalid_argument beyond
/// kMostSequentialPairs.
GateDesign gate_design(std::size_t pairs, double alpha);

/// Pairs from which on a one-sided sign-flip test can reach `alpha`, and launches of either side
/// from which on the two-sample test can.
std::size_t least_pairs(double alpha);
std::size_t least_launches(double alpha);

/// log(rate) of both sides.
struct LogRates {
  Series base, fresh;  ///< [point][repeat]
  bool paired = true;  ///< the k-th of both were measured side by side; as many of both
};
/// One of the points, and their mean: a series alone.
LogRates one_point(const LogRates& logs, std::size_t point);
LogRates mean_point(const LogRates& logs);
/// What one series says of the shift: estimate, interval, spreads and slow launches.
ShiftAnswer answer_of(const LogRates& one, const GateDesign& design);
/// The slow launches alone, without the tests of the shift.
SlowLaunches slow_of(const LogRates& one, const GateDesign& design);
/// log(new / base) of each pair: [point][pair].
Series log_ratios(const LogRates& logs);
/// Returns the centre of log(new / base) of one series.
double centre_of(const LogRates& logs);
/// 100 (1 - exp(log_ratio)).
double slowdown_percent(double log_ratio);

/// regressed: at a look, slower by the joint sign-flip test, with a mean slowdown of at least
/// `threshold` or a point to blame that lost as much, or at the last look by a larger share of slow
/// launches (measure/slow_launches.hpp). pass: at a look before that, a mean slowdown of `excluded`
/// or more is refused by the same test of the shifted ratios, and a loss of `excluded_point` of
/// each point by its own; and neither the 95 % interval nor the bare mean holds them for possible.
/// inconclusive: neither at the last look. more_pairs: neither yet. Both lists of looks have the
/// same numbers of pairs (std::invalid_argument otherwise).
GateDecision decide(const Series& log_ratios, const GateDesign& design = {});

/// Applies the rule with one look at all there is, at the whole levels of `design`: for sets that
/// are there already. `pairs` is the smaller number of repeats. The decision is inconclusive where
/// they can't fail.
GateDecision decide_once(const LogRates& logs, const GateDesign& design);

}  // namespace scalemark
