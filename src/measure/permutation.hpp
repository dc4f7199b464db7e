// Permutation tests of winsorised means (measure/statistics.hpp), with the estimates and intervals
// that belong to them: test, estimate and interval never contradict each other, since the limits of
// winsorising do not depend on the assumed difference and every p is monotone in it.
//
// The permutation tests count all assignments. They hold their level where values are exchangeable,
// up to what the limits depend on the assignment. The levels under unlike spreads, sizes and shapes
// are simulated in docs/gate.md.
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

/// The alternative to "no difference". `two_sided` doubles the smaller of the two one-sided p.
enum class Alternative { two_sided, greater, less };

/// The result of a permutation test.
struct PermutationTest {
  double p = 1;
  double least_p = 1;  ///< the smallest that so many values can give
  bool exact = true;   ///< false: (1 + count) / (1 + drawn assignments), Phipson and Smyth 2010
};

/// Returns the centre of differences: the number to subtract from them so that their winsorised sum
/// is 0. This is the mean where no value lies far from the others. Returns NaN for no values.
double sign_flip_centre(std::span<const double> differences);
/// Returns the shift from a to b: the number to subtract from b so that the winsorised sums of both
/// agree, with all values winsorised together after the shift. Returns NaN for no values.
double permutation_centre(std::span<const double> a, std::span<const double> b);

// Winsorised means miss what moves a share of the launches, ranks miss by how much, and plain means
// miss everything beside a few launches that lie far off. So the tests are made together: the least
// p counts, times a factor that is small since they agree in most cases. The factors keep the level
// by simulation (docs/gate.md).

/// The factor of the least p of two samples. The p of their winsorised means counts as
/// kWinsorisedShare times as large beside that of Welch's test.
inline constexpr double kCombinedSamples = 1.125, kWinsorisedShare = 2;
/// Returns the p of two samples by the tests of their winsorised means, of their ranks and, where
/// there is one, of Welch. It is at least that of one of all assignments.
double combined_p(double winsorised, double ranks, std::optional<double> welch, double assignments);

/// With this few pairs a permutation test has few levels, and loses power by it. sign_flip_test()
/// then takes few_pairs_p().
inline constexpr std::size_t kLeastStudentPairs = 5, kMostStudentPairs = 12;
/// Returns the factor of the least p of so many pairs.
double pairs_factor(std::size_t pairs);
/// Returns the p of pairs by the tests of their winsorised mean and of Student. It is at least that
/// of one of all assignments.
double combined_pairs_p(double winsorised, double student, std::size_t pairs, double assignments);
/// Returns the geometric mean of the share of assignments and of student_p() of the winsorised
/// values, but not less than the share of one of the 2^pairs assignments.
double few_pairs_p(double share, double student, std::size_t pairs);
/// Returns Student's one-sided p that the mean of the values is at most 0. It is 0 or 1 where all
/// values are equal.
double student_p(std::span<const double> values);

/// Runs the sign-flip test (Fisher 1935, "The Design of Experiments", section 21) that paired
/// differences are symmetric around 0. p is the share of the 2^n assignments of signs whose
/// winsorised sum is at least as large as the observed one, ties included; from 5 to 12 values it
/// is few_pairs_p() of that share. From 5 values on it is combined_pairs_p() of that and of the
/// paired t test. `greater` means that the mean lies above 0. A one-sided p is at least 0.5 where
/// sign_flip_centre() lies on the other side. There must be at least 1 value.
PermutationTest sign_flip_test(std::span<const double> differences, Alternative alternative,
                               const CountedAssignments& assignments = {});

/// Runs the two-sample permutation test (Pitman 1937) that a and b come from one distribution. p is
/// the share of the C(n + m, m) divisions of all values whose second part has at least the observed
/// sum. `greater` means that b lies above a. From 5 values of each on p is combined_p() of that
/// share, of RankSumTest (measure/hodges_lehmann.hpp) and, where the sizes are alike, of
/// welch_test() (measure/spreads.hpp); where the samples may be unlike it is at least that of
/// winsorised_welch_test(). A one-sided p is at least 0.5 where permutation_centre() lies on the
/// other side. Each sample must have at least 1 value.
PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 Alternative alternative,
                                 const CountedAssignments& assignments = {});

/// Returns the smallest two-sided p that n pairs, or samples of n and m values, can give.
double least_sign_flip_p(std::size_t n);
double least_permutation_p(std::size_t n, std::size_t m);

/// An interval with its actual confidence, which few values may not allow to choose.
struct ExactInterval {
  Interval interval;
  double confidence;  ///< actual confidence of the interval
};
/// The widest interval of few values may have a confidence that is lower than the wanted one by
/// this much.
inline constexpr double kConfidenceSlack = 0.02;

/// Returns the interval of all centres that the two-sided sign-flip test does not reject at level 1
/// - confidence (Hartigan 1969, "Using Subsample Values as Typical Values"). Returns nullopt where
/// the
/// widest interval, smallest to largest value, has less than confidence - kConfidenceSlack; for 95
/// % that is below 5 values.
std::optional<ExactInterval> sign_flip_interval(std::span<const double> x, double confidence = 0.95,
                                                const CountedAssignments& assignments = {});

/// Returns the interval of all shifts from a to b that the two-sided two-sample test does not
/// reject at level 1 - confidence. Returns nullopt where the widest interval has less than
/// confidence - kConfidenceSlack.
std::optional<ExactInterval> permutation_interval(std::span<const double> a,
                                                  std::span<const double> b,
                                                  double confidence = 0.95,
                                                  const CountedAssignments& assignments = {});

// Computes the upper tail of a permutation distribution as a function of the difference that the
// null hypothesis assumes, and the difference at which it passes a share, which is the limit of an
// interval.

/// Holds the sums to count when a difference is assumed. Subsets of the values with a sum of at
/// most the limit are assignments that are at least as large as the observed one.
struct AssumedSums {
  std::vector<double> values;
  double limit = 0;
  double mean = 0, deviation = 0;  ///< mean and standard deviation of the sums of all subsets
};

/// The upper tail of the permutation distribution of given values.
struct PermutationTail {
  std::shared_ptr<const Subsets> subsets;
  double observed = 0;  ///< 1 where the observed assignment is not among the subsets
  std::function<AssumedSums(double)> assuming;

  double assignments() const { return observed + subsets->size(); }
  /// Returns the number of assignments at least as large as the observed one. It rises with the
  /// assumed difference.
  double at_least(double difference) const;
};

/// Returns the least assumed difference that the tail does not reject, that is from which on more
/// than `refused` assignments are at least as large as the observed one. It is found by halving
/// from `below`, which is rejected, to `above`, which is not.
double lower_limit(const PermutationTail& tail, double below, double above, double refused);

}  // namespace scalemark
