// Permutation tests of winsorised means (measure/statistics.hpp), exact for as few values as
// launches are, with the estimates and intervals that belong to them: test, estimate and interval
// never contradict each other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {

/// What is held against "no difference". two_sided: twice the smaller of the two one-sided p.
enum class Alternative { two_sided, greater, less };

struct PermutationTest {
  double p = 1;
  double least_p = 1;  ///< the smallest that so many values can give
  bool exact = true;   ///< false: (1 + count) / (1 + drawn assignments), Phipson and Smyth 2010
};

/// The centre of differences: what must be taken from them so that their winsorised sum is 0. The
/// mean where no value lies far from the others. NaN for no values.
double sign_flip_centre(std::span<const double> differences);
/// The same of the shift from a to b, all values winsorised together after it.
double permutation_centre(std::span<const double> a, std::span<const double> b);

/// Sign-flip test (Fisher 1935, "The Design of Experiments", section 21) that paired differences
/// are symmetric around 0: p = share of the 2^n assignments of signs whose winsorised sum is at
/// least as large as the observed one, ties included. `greater`: the mean lies above 0. Not below 1
/// value.
PermutationTest sign_flip_test(std::span<const double> differences, Alternative alternative,
                               const CountedAssignments& assignments = {});

/// Two-sample permutation test (Pitman 1937) that a and b come from one distribution: p = share of
/// the C(n + m, m) divisions of all values whose second part has at least the observed sum.
/// `greater`: b lies above a. At least 1 value each.
PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 Alternative alternative,
                                 const CountedAssignments& assignments = {});

/// The smallest two-sided p that n pairs, or samples of n and m values, can give.
double least_sign_flip_p(std::size_t n);
double least_permutation_p(std::size_t n, std::size_t m);

/// An interval whose confidence few values may not allow to choose.
struct ExactInterval {
  Interval interval;
  double confidence;  ///< what it has
};
/// How far below the wanted confidence the widest interval of few values may stay.
inline constexpr double kConfidenceSlack = 0.02;

/// Every centre that the two-sided sign-flip test does not refuse at 1 - confidence (Hartigan 1969,
/// "Using Subsample Values as Typical Values"). Exact for values that are symmetric around the
/// centre, whatever their shape. nullopt where the widest one, smallest to largest value, has less
/// than confidence - kConfidenceSlack: for 95 % below 5 values.
std::optional<ExactInterval> sign_flip_interval(std::span<const double> x, double confidence = 0.95,
                                                const CountedAssignments& assignments = {});

/// The same of the shift from a to b by the two-sample test. Exact where a and b differ by a shift
/// alone.
std::optional<ExactInterval> permutation_interval(std::span<const double> a,
                                                  std::span<const double> b,
                                                  double confidence = 0.95,
                                                  const CountedAssignments& assignments = {});

// The upper tail of a permutation distribution as a function of the difference that the null
// hypothesis assumes, and the difference at which it passes a share: the limit of an interval.

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
