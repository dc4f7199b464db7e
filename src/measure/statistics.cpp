// Computes order statistics, moments and Student intervals of independent values.
#include "measure/statistics.hpp"

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

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

double expected_maximum_of_normals(double n) {
  if (!(n >= 1)) throw std::domain_error("the maximum of fewer than one value");
  if (n == 1) return 0;
  // This integrates the density n phi(x) Phi(x)^(n - 1). The power is computed from its logarithm,
  // which keeps the upper tail.
  const auto first_moment = [n](double x) {
    const double above = std::erfc(x / boost::math::constants::root_two<double>()) / 2;
    if (above >= 1) return 0.;
    const double log_density =
        std::log(n) - x * x / 2 - std::log(boost::math::constants::root_two_pi<double>());
    return x * std::exp(log_density + (n - 1) * std::log1p(-above));
  };
  // All but 1e-16 of the distribution of the largest value lies around the quantile 1 - 1 / n.
  const double centre =
      n > 2 ? boost::math::quantile(boost::math::complement(boost::math::normal(), 1 / n)) : 0;
  using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
  return Rule::integrate(first_moment, centre - 9, centre, 10, 1e-12) +
         Rule::integrate(first_moment, centre, centre + 9, 10, 1e-12);
}

namespace {

std::vector<double> distances(std::span<const double> x, double centre) {
  std::vector<double> away;
  for (const double value : x) away.push_back(std::abs(value - centre));
  return away;
}

/// Values that agree but for rounding have no spread that could limit others.
bool is_rounding(double spread, std::span<const double> x) {
  constexpr double kRounding = 1e-12;
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  return spread <= kRounding * largest;
}

/// `x`: the values that were measured, of whatever kind.
double limit_of(double multiple, std::span<const double> away, std::span<const double> x) {
  const double spread = away.empty() ? 0 : median(away);
  return is_rounding(spread, x) ? std::numeric_limits<double>::infinity() : multiple * spread;
}

}  // namespace

double winsor_limit(std::span<const double> x) {
  if (x.size() < kLeastLimited) return std::numeric_limits<double>::infinity();
  return limit_of(kWinsorLimit, distances(x, median(x)), x);
}

double winsor_limit(std::span<const double> a, std::span<const double> b) {
  if (std::min(a.size(), b.size()) < kLeastLimited) return std::numeric_limits<double>::infinity();
  std::vector<double> away = distances(a, median(a));
  const std::vector<double> others = distances(b, median(b));
  away.insert(away.end(), others.begin(), others.end());
  return limit_of(kWinsorLimit, away, std::abs(a.front()) > std::abs(b.front()) ? a : b);
}

std::vector<double> limited(std::vector<double> x, double centre, double limit) {
  for (double& value : x) value = std::clamp(value, centre - limit, centre + limit);
  return x;
}

std::vector<double> winsorised_magnitudes(std::vector<double> x) {
  const std::vector<double> magnitudes = distances(x, 0);
  const double centre = median(magnitudes);
  const double limit =
      centre + limit_of(kMagnitudeLimit, distances(magnitudes, centre), magnitudes);
  return limited(std::move(x), 0, limit);
}

WinsorisedSample winsorised_sample(std::span<const double> x) {
  const double centre = median(x);
  const std::vector<double> away = distances(x, centre);
  const double limit = limit_of(kSampleLimit, away, x);
  const auto within =
      static_cast<double>(std::ranges::count_if(away, [=](double one) { return one <= limit; }));
  const std::vector<double> kept = limited({x.begin(), x.end()}, centre, limit);
  const auto n = static_cast<double>(x.size());
  return {mean(kept), standard_deviation(kept) * (n / within) / std::sqrt(n),
          std::max(1., within - 1)};
}

std::optional<Interval> log_interval(const std::vector<double>& values, double estimate) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  const auto interval = student_interval(logs);
  if (!interval) return std::nullopt;
  return Interval{std::min(std::exp(interval->lo), estimate),
                  std::max(std::exp(interval->hi), estimate)};
}

}  // namespace scalemark
