// Many tests at once, and what a test could have found.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "measure/statistics.hpp"

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

}  // namespace scalemark
