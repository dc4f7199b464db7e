// See trend.hpp.
#include "measure/trend.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Pairs (i, j), i < j, with values[i] > values[j]; sorts the values (merge sort).
double inversions(std::span<double> values, std::vector<double>& scratch) {
  if (values.size() < 2) return 0;
  const std::size_t half = values.size() / 2;
  double count =
      inversions(values.first(half), scratch) + inversions(values.subspan(half), scratch);
  scratch.assign(values.begin(), values.end());
  std::size_t left = 0, right = half;
  for (double& place : values) {
    const bool from_left =
        right == scratch.size() || (left < half && scratch[left] <= scratch[right]);
    if (!from_left) count += static_cast<double>(half - left);
    place = scratch[from_left ? left++ : right++];
  }
  return count;
}

/// Sizes of the groups of alike values.
std::vector<double> ties(const std::vector<double>& sorted) {
  std::vector<double> groups;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i] == sorted[i - 1])
      ++groups.back();
    else
      groups.push_back(1);
  }
  return groups;
}

/// P(|S| at least `s`) over all orders of n different values. The k-th value takes part in 0 to
/// k - 1 inversions, each as likely as the others, and S = n (n - 1) / 2 - 2 inversions.
double exact_p(std::size_t n, double s) {
  std::vector<double> share{1};
  for (std::size_t k = 2; k <= n; ++k) {
    std::vector<double> next(share.size() + k - 1, 0);
    for (std::size_t i = 0; i < share.size(); ++i)
      for (std::size_t more = 0; more < k; ++more)
        next[i + more] += share[i] / static_cast<double>(k);
    share = std::move(next);
  }
  double p = 0;
  const double most = static_cast<double>(share.size() - 1);
  for (std::size_t i = 0; i < share.size(); ++i)
    if (std::abs(most - 2 * static_cast<double>(i)) >= std::abs(s)) p += share[i];
  return std::min(1., p);
}

/// Kendall 1975, section 4.9.
double normal_p(const std::vector<double>& groups, double n, double s) {
  double variance = n * (n - 1) * (2 * n + 5);
  for (const double t : groups) variance -= t * (t - 1) * (2 * t + 5);
  if (!(variance > 0)) return 1;
  return std::erfc(std::abs(s) / std::sqrt(variance / 18) / std::sqrt(2.));
}

double sen_slope(std::span<const double> times, std::span<const double> values) {
  std::vector<double> slopes;
  const auto add = [&](std::size_t i, std::size_t j) {
    if (times[j] > times[i]) slopes.push_back((values[j] - values[i]) / (times[j] - times[i]));
  };
  const std::size_t n = values.size(), half = (n + 1) / 2;
  for (std::size_t i = 0; i < n; ++i) {
    if (n > kMostPairedTrend) {
      if (i + half < n) add(i, i + half);
      continue;
    }
    for (std::size_t j = i + 1; j < n; ++j) add(i, j);
  }
  return slopes.empty() ? 0 : median(slopes);
}

}  // namespace

TrendTest find_trend(std::span<const double> times, std::span<const double> values) {
  TrendTest trend;
  if (values.size() < 3) return trend;
  std::vector<double> sorted(values.begin(), values.end()), scratch;
  const auto n = static_cast<double>(values.size());
  const double smaller_later = inversions(sorted, scratch);
  const std::vector<double> groups = ties(sorted);
  double different = n * (n - 1) / 2;
  for (const double t : groups) different -= t * (t - 1) / 2;
  trend.s = different - 2 * smaller_later;
  trend.exact = values.size() <= kMostExactTrend && groups.size() == values.size();
  trend.p = trend.exact ? exact_p(values.size(), trend.s) : normal_p(groups, n, trend.s);
  trend.change = sen_slope(times, values) * (times.back() - times.front());
  return trend;
}

namespace {

constexpr double kMostAutocorrelation = 0.9;

/// Half the mean square of the differences over `lag` places, without the `lag` largest, made good
/// for a normal series.
double half_square(std::span<const double> values, std::size_t lag) {
  std::vector<double> differences;
  for (std::size_t i = lag; i < values.size(); ++i)
    differences.push_back(values[i] - values[i - lag]);
  const double usual = median(differences);
  for (double& d : differences) d = (d - usual) * (d - usual);
  std::ranges::sort(differences);
  const double dropped = static_cast<double>(lag) / static_cast<double>(differences.size());
  differences.resize(differences.size() - lag);
  const boost::math::normal normal;
  const double cut = boost::math::quantile(normal, 1 - dropped / 2);
  const double left = 1 - 2 * cut * boost::math::pdf(normal, cut) / (1 - dropped);
  return mean(differences) / left / 2;
}

}  // namespace

std::optional<RunDrift> find_drift(std::span<const double> values) {
  if (values.size() < kLeastDrift || !(mean(values) > 0)) return std::nullopt;
  const std::size_t third = values.size() / 3;
  const auto n = static_cast<double>(values.size());
  RunDrift drift;
  const double near = half_square(values, 1);
  if (near > 0)
    drift.autocorrelation = std::clamp(half_square(values, 2) / near - 1, 0., kMostAutocorrelation);
  const double alike = (1 + drift.autocorrelation) / (1 - drift.autocorrelation);
  const double variance = near / (1 - drift.autocorrelation) * alike;
  const double error = std::sqrt(2 * variance / static_cast<double>(third)) / mean(values);
  drift.change = (mean(values.last(third)) - mean(values.first(third))) / mean(values);
  const boost::math::students_t t(std::max(2., (n / 2 - 1) / alike));
  if (error > 0)
    drift.p = 2 * boost::math::cdf(boost::math::complement(t, std::abs(drift.change) / error));
  else
    drift.p = drift.change == 0 ? 1 : 0;
  const double half = boost::math::quantile(t, 0.975) * error;
  drift.ci95 = {drift.change - half, drift.change + half};
  return drift;
}

}  // namespace scalemark
