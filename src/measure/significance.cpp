// Computes Holm's adjustment, standard errors, power and exact intervals of shares.
#include "measure/significance.hpp"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "measure/permutation.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

std::vector<double> holm_adjusted(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    largest = std::max(largest, static_cast<double>(p.size() - place) * p[order[place]]);
    adjusted[order[place]] = std::min(1., largest);
  }
  return adjusted;
}

StandardError paired_error(std::span<const double> differences) {
  const auto n = static_cast<double>(differences.size());
  return {standard_deviation(differences) / std::sqrt(n), n - 1};
}

StandardError pooled_error(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size()), m = static_cast<double>(y.size());
  const double squares =
      std::pow(standard_deviation(x), 2) * (n - 1) + std::pow(standard_deviation(y), 2) * (m - 1);
  const double freedom = n + m - 2;
  return {std::sqrt(squares / freedom * (1 / n + 1 / m)), freedom};
}

StandardError winsorised_error(std::span<const double> differences) {
  return paired_error(limited({differences.begin(), differences.end()},
                              sign_flip_centre(differences), winsor_limit(differences)));
}

StandardError winsorised_error(std::span<const double> x, std::span<const double> y) {
  const double limit = winsor_limit(x, y);
  return pooled_error(limited({x.begin(), x.end()}, median(x), limit),
                      limited({y.begin(), y.end()}, median(y), limit));
}

double minimum_detectable_difference(const StandardError& error, double alpha, double power) {
  const double limit = student_quantile(1 - alpha, error.degrees_of_freedom);
  const auto found = [&](double noncentrality) {
    const boost::math::non_central_t t(error.degrees_of_freedom, noncentrality);
    return boost::math::cdf(boost::math::complement(t, limit)) + boost::math::cdf(t, -limit);
  };
  double low = 0, high = 2 * (limit + 10);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (found(middle) < power ? low : high) = middle;
  }
  return high * error.value;
}

std::size_t repeats_to_find(double difference, const StandardError& error, std::size_t repeats,
                            double alpha, double power) {
  const boost::math::normal normal;
  const double limit = boost::math::quantile(normal, 1 - alpha / 2);
  const double wanted = limit + boost::math::quantile(normal, power);
  const double of_one =
      static_cast<double>(repeats) * std::pow(error.value * wanted / difference, 2);
  return static_cast<std::size_t>(std::min(1e9, std::ceil(of_one + limit * limit / 2)));
}

namespace {

constexpr std::size_t kMostRepeats = 1'000'000;

double equivalence_power(std::size_t n, double deviation, bool paired, const Interval& margin,
                         double alpha) {
  const double values = static_cast<double>(n), samples = paired ? 1 : 2;
  const double error = deviation * std::sqrt(samples / values);
  if (error == 0) return 1;
  const boost::math::students_t student(samples * (values - 1));
  const double t = boost::math::quantile(student, 1 - alpha);
  const double above = boost::math::cdf(student, -margin.lo / error - t);
  const double below = boost::math::cdf(student, margin.hi / error - t);
  return above + below - 1;
}

}  // namespace

double sign_flip_equivalence_p(std::span<const double> differences, const Interval& margin,
                               const CountedAssignments& assignments) {
  return std::max(
      sign_flip_test(minus(differences, margin.lo), Alternative::greater, assignments).p,
      sign_flip_test(minus(differences, margin.hi), Alternative::less, assignments).p);
}

double permutation_equivalence_p(std::span<const double> a, std::span<const double> b,
                                 const Interval& margin, const CountedAssignments& assignments) {
  return std::max(permutation_test(a, minus(b, margin.lo), Alternative::greater, assignments).p,
                  permutation_test(a, minus(b, margin.hi), Alternative::less, assignments).p);
}

std::optional<std::size_t> repeats_for_equivalence(double deviation, bool paired,
                                                   const Interval& margin, double alpha,
                                                   double power) {
  if (!(margin.lo < 0) || !(margin.hi > 0)) return std::nullopt;
  const auto enough = [&](std::size_t n) {
    return equivalence_power(n, deviation, paired, margin, alpha) >= power;
  };
  std::size_t low = 1, high = 2;  // low: too few values
  while (!enough(high)) {
    low = high;
    high *= 2;
    if (high > kMostRepeats) return std::nullopt;
  }
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace scalemark
