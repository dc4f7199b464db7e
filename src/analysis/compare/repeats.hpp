// What a comparison of two sets at one point rests on: one value a repeat of a metric, and which
// repeats of both sets belong together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"

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

/// Of those that have the metric (not efficiency); `rounds`: each round of them.
Repeats repeats_of(const std::vector<const MeasuredLaunch*>& launches, const std::string& metric,
                   bool rounds);

/// Efficiency: the rate per rank of each repeat over that of its partner at the smallest point,
/// which is the same repeat of the sweep or the same round of the curve; where launches have no
/// such bond, the one that was launched as the k-th there too. What has no partner is left out.
Repeats efficiencies(const Repeats& throughputs, const Repeats& smallest);

std::vector<double> logs_of(const Repeats& repeats);

/// Of throughput total units / total seconds (a rank), of others the geometric mean.
double value_of(const Repeats& repeats, const std::string& metric);

/// Launches of one sweep by one build lie side by side: every repeat went once through all points.
bool of_one_sweep(const Repeats& a, const Repeats& b);

/// Repeats of both sets with the same number, in its order, and the numbers without a partner.
struct Pairing {
  Repeats base, other;
  std::vector<std::int64_t> base_alone, other_alone;
};
Pairing pair_up(const Repeats& base, const Repeats& other);

}  // namespace scalemark
