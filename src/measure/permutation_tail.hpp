// The upper tail of a permutation distribution as a function of the difference that the null
// hypothesis assumes, and the difference at which it passes a share: the limit of an interval.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "measure/subsets.hpp"

namespace scalemark {

/// What is counted where a difference is assumed: subsets of the values with a sum of at most the
/// limit are assignments as large as the observed one.
struct AssumedSums {
  std::vector<double> values;
  double limit = 0;
  double mean = 0, deviation = 0;  ///< of the sums of all subsets
};

struct PermutationTail {
  std::shared_ptr<const Subsets> subsets;
  double observed = 0;  ///< 1 where the observed assignment is not among the subsets
  std::function<AssumedSums(double)> assuming;

  double assignments() const { return observed + subsets->size(); }
  /// Assignments at least as large as the observed one. Rises with the difference that is assumed.
  double at_least(double difference) const;
};

/// The least assumed difference that the tail leaves possible, by halving from `below`, which it
/// does not, to `above`, which it does: from there on more than `refused` assignments are as large
/// as the observed one.
double lower_limit(const PermutationTail& tail, double below, double above, double refused);

}  // namespace scalemark
