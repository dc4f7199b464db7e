// Many tests at once, and what a test could have found.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {

/// p adjusted for their number, in the order given (Holm 1979): the i-th smallest of m becomes the
/// largest of (m - j + 1) p(j), j <= i, at most 1. Refusing where it is at most alpha keeps the
/// chance of any false refusal at alpha, however the tests depend on each other.
std::vector<double> holm_adjusted(const std::vector<double>& p);

/// Of a difference of means, with what its variance was estimated from.
struct StandardError {
  double value = 0, degrees_of_freedom = 0;
};
/// Of the mean of n paired differences: s / sqrt(n), n - 1. At least two.
StandardError paired_error(std::span<const double> differences);
/// Of the difference of the means of two samples, their variances pooled. At least two of each.
StandardError pooled_error(std::span<const double> x, std::span<const double> y);

/// The same of values as the tests take them (measure/statistics.hpp): around sign_flip_centre(),
/// or each sample around its median.
StandardError winsorised_error(std::span<const double> differences);
StandardError winsorised_error(std::span<const double> x, std::span<const double> y);

/// The least true difference that a two-sided t-test at level `alpha` finds with probability
/// `power`: delta = k x error, where Student's non-central t with non-centrality k leaves
/// `power` beyond the test's limits (Cohen 1988, section 2.2). In the unit of `error`.
double minimum_detectable_difference(const StandardError& error, double alpha, double power);

/// Repeats with which `difference` is found by the same test and with the same power, where
/// `repeats` gave `error`: normal theory with Guenther's correction for Student's t (1981, "Sample
/// size formulas for normal theory t tests").
std::size_t repeats_to_find(double difference, const StandardError& error, std::size_t repeats,
                            double alpha, double power);

// Whether a difference lies within a margin: two one-sided exact tests (Schuirmann 1987), and how
// many values that takes.

/// The larger p of the sign-flip tests that the mean of paired differences lies above margin.lo and
/// below margin.hi. At most alpha: it lies within, by tests of level alpha each. At least 1 value.
double sign_flip_equivalence_p(std::span<const double> differences, const Interval& margin,
                               const CountedAssignments& assignments = {});

/// The same of the shift from a to b by the two-sample permutation test. At least 1 value each.
double permutation_equivalence_p(std::span<const double> a, std::span<const double> b,
                                 const Interval& margin,
                                 const CountedAssignments& assignments = {});

/// The least number of values, of each sample where these are two, at which both one-sided t-tests
/// of level `alpha` refuse with probability `power` if the true difference is 0: the least n with
/// F(hi / e - t) + F(-lo / e - t) - 1 >= power, F Student's distribution, t its 1 - alpha quantile,
/// e the standard error of n values (Phillips 1990, with the central t). `deviation`: of one paired
/// difference, or pooled of one value of a sample. nullopt above a million, or where 0 does not lie
/// within the margin.
std::optional<std::size_t> repeats_for_equivalence(double deviation, bool paired,
                                                   const Interval& margin, double alpha,
                                                   double power);

}  // namespace scalemark
