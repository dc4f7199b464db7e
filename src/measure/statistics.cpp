// Order statistics, moments and Student intervals of independent values.
#include "measure/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace scalemark {

std::vector<double> minus(std::span<const double> x, double constant) {
  std::vector<double> left(x.begin(), x.end());
  for (double& value : left) value -= constant;
  return left;
}

double mean(std::span<const double> x) {
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double standard_deviation(std::span<const double> x) {
  if (x.size() < 2) return 0;
  const double center = mean(x);
  double squares = 0;
  for (const double value : x) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(x.size() - 1));
}

double quantile(std::span<const double> x, double q) {
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(x.begin(), x.end());
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(sorted.begin(), nth, sorted.end());
  const double fraction = place - static_cast<double>(below);
  if (fraction == 0) return *nth;
  const double above = *std::min_element(nth + 1, sorted.end());
  return *nth + fraction * (above - *nth);
}

double median(std::span<const double> x) { return quantile(x, 0.5); }

double median_absolute_deviation_scaled(std::span<const double> x) {
  const double center = median(x);
  std::vector<double> deviations;
  deviations.reserve(x.size());
  for (const double value : x) deviations.push_back(std::abs(value - center));
  return 1.4826 * median(deviations);
}

double student_quantile(double confidence, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.5 + confidence / 2);
}

std::optional<Interval> student_interval(std::span<const double> x, double confidence) {
  if (x.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(x.size());
  const double half = student_quantile(confidence, n - 1) * standard_deviation(x) / std::sqrt(n);
  return Interval{mean(x) - half, mean(x) + half};
}

}  // namespace scalemark
