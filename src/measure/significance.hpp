// Many tests at once, and what a test could have found.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {

/// Returns p adjusted for the number of tests, in the given order (Holm 1979). The i-th smallest of
/// m becomes the largest of (m - j + 1) p(j), j <= i, at most 1. Rejecting where it is at most
/// alpha keeps the probability of any false rejection at alpha, however the tests depend on each
/// other.
std::vector<double> holm_adjusted(const std::vector<double>& p);

/// The standard error of a difference of means, with the degrees of freedom of its variance.
struct StandardError {
  double value = 0, degrees_of_freedom = 0;
};
/// Returns the standard error s / sqrt(n) of the mean of n paired differences, with n - 1 degrees
/// of freedom. There must be at least two.
StandardError paired_error(std::span<const double> differences);
/// Returns the standard error of the difference of the means of two samples with pooled variance.
/// Each must have at least two values.
StandardError pooled_error(std::span<const double> x, std::span<const double> y);

/// The same of values as the tests take them (measure/statistics.hpp): around sign_flip_centre(),
/// or each sample around its median.
StandardError winsorised_error(std::span<const double> differences);
StandardError winsorised_error(std::span<const double> x, std::span<const double> y);

/// Returns the least true difference that a two-sided t-test at level `alpha` finds with
/// probability `power`. It is delta = k x error, where Student's non-central t with non-centrality
/// k leaves `power` beyond the limits of the test (Cohen 1988, section 2.2). It has the unit of
/// `error`.
double minimum_detectable_difference(const StandardError& error, double alpha, double power);

/// Returns the number of repeats with which the same test finds `difference` with the same power,
/// given that `repeats` resulted in `error`. Uses normal theory with Guenther's correction for
/// Student's t (1981, "Sample size formulas for normal theory t tests").
std::size_t repeats_to_find(double difference, const StandardError& error, std::size_t repeats,
                            double alpha, double power);

// Tests whether a difference lies within a margin by two one-sided tests (Schuirmann 1987),
// and computes how many values such a test needs.

/// Returns the larger p of two sign-flip tests: that the mean of paired differences lies above
/// margin.lo and that it lies below margin.hi. A p of at most alpha says that the mean lies within
/// the margin, by tests of level alpha each. There must be at least 1 value.
double sign_flip_equivalence_p(std::span<const double> differences, const Interval& margin,
                               const CountedAssignments& assignments = {});

/// Returns the larger p of two permutation tests: that the shift from a to b lies above margin.lo
/// and that it lies below margin.hi. Each sample must have at least 1 value.
double permutation_equivalence_p(std::span<const double> a, std::span<const double> b,
                                 const Interval& margin,
                                 const CountedAssignments& assignments = {});

/// Returns the least number of values (of each sample where there are two) at which both one-sided
/// t-tests of level `alpha` reject with probability `power` if the true difference is 0. This is
/// the least n with F(hi / e - t) + F(-lo / e - t) - 1 >= power, where F is Student's distribution,
/// t its 1 - alpha quantile and e the standard error of n values (Phillips 1990, with the central
/// t). `deviation` is the standard deviation of one paired difference, or the pooled one of one
/// value of a sample. Returns nullopt above a million, or where 0 does not lie within the margin.
std::optional<std::size_t> repeats_for_equivalence(double deviation, bool paired,
                                                   const Interval& margin, double alpha,
                                                   double power);

}  // namespace scalemark
