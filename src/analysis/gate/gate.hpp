// The decision rule of `scalemark gate`: is the new build slower than the base? Pairs of launches
// are measured until it is known or the last look is reached. Design and operating characteristics:
// docs/gate.md.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/group_sequential.hpp"

namespace scalemark {

struct GateDesign {
  /// Of false alarms: with no slowdown, at most the last `spent` of all gates say "regressed".
  std::vector<SequentialLook> alarm{{8, 0.004}, {10, 0.006}, {14, 0.008}, {20, 0.01}};
  /// Of false passes: with a slowdown of `excluded`, at most the last `spent` of all say "pass".
  std::vector<SequentialLook> pass{{8, 0.02}, {10, 0.03}, {14, 0.04}, {20, 0.05}};
  double threshold = 0.01;  ///< least slowdown that is called a regression (fraction)
  double excluded = 0.02;   ///< slowdown that a pass excludes (fraction)
  double power = 0.8;       ///< of the minimum detectable slowdown
};

enum class GateVerdict { regressed, pass, inconclusive, more_pairs };
std::string to_string(GateVerdict verdict);

struct GateDecision {
  GateVerdict verdict = GateVerdict::more_pairs;
  std::size_t pairs = 0;        ///< what the decision is based on
  std::size_t next_pairs = 0;   ///< of the next look; 0: there is none
  double slowdown_percent = 0;  ///< 100 (1 - exp(mean log ratio)) over the pairs used
  double p = 1;                 ///< one-sided exact sign-flip test of these pairs, for reading
  /// Slowdown that the last look would have found with `power`; unset where so few launches can't
  /// reach the level.
  std::optional<double> detectable_percent;
};

/// Looks after 8, 10, 14 and 20 pairs as above, those beyond `pairs` left out and the last one
/// after `pairs`, where all of `alpha` is spent. Throws std::invalid_argument beyond
/// kMostSequentialPairs.
GateDesign gate_design(std::size_t pairs, double alpha);

/// Pairs from which on a one-sided sign-flip test can reach `alpha`.
std::size_t least_pairs(double alpha);

/// The primary statistic of both sides: for each repeat the mean over all points of log(rate).
struct LogRates {
  std::vector<double> base, fresh;
  bool paired = true;  ///< the k-th of both were measured side by side; as many of both
};
/// fresh - base of each pair: the mean over all points of log(new / base).
std::vector<double> log_ratios(const LogRates& logs);
/// 100 (1 - exp(log_ratio)).
double slowdown_percent(double log_ratio);
/// One-sided p that the fresh ones are not slower: sign-flip test of pairs, permutation test of two
/// samples.
double slower_p(const LogRates& logs);

/// regressed: at a look, slower by the sign-flip test and by at least `threshold`. pass: at a look
/// before that, a slowdown of `excluded` or more is refused by the same test of the shifted ratios.
/// inconclusive: neither at the last look. more_pairs: neither yet. Both lists of looks have the
/// same numbers of pairs (std::invalid_argument otherwise).
GateDecision decide(std::span<const double> log_ratios, const GateDesign& design = {});

/// The same rule with one look at all there is, at the whole levels of `design`: for sets that are
/// there already. `pairs` is the smaller number of repeats.
GateDecision decide_once(const LogRates& logs, const GateDesign& design);

}  // namespace scalemark
