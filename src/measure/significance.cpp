// See significance.hpp.
#include "measure/significance.hpp"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <numeric>

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
  return paired_error(winsorised_magnitudes(minus(differences, sign_flip_centre(differences))));
}

StandardError winsorised_error(std::span<const double> x, std::span<const double> y) {
  return pooled_error(winsorised_deviations({x.begin(), x.end()}),
                      winsorised_deviations({y.begin(), y.end()}));
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

}  // namespace scalemark
