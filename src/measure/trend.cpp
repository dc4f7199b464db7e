// Computes the Mann-Kendall test and Sen's slope.
#include "measure/trend.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Counts the pairs (i, j), i < j, with values[i] > values[j]. Sorts the values (merge sort).
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

/// Returns the sizes of the groups of equal values.
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

/// Returns P(|S| at least `s`) over all orders of n different values. The k-th value takes part in
/// 0 to k - 1 inversions, all equally likely, and S = n (n - 1) / 2 - 2 inversions.
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

/// Returns p by the normal approximation with ties (Kendall 1975, section 4.9).
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

/// Returns half the mean square of the differences over `lag` places. The `lag` largest differences
/// are left out, and the result is corrected for that as for a normal series.
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

namespace {

/// smallest_step() draws this many rows.
constexpr int kPowerDraws = 400;

std::size_t most_changes(std::size_t n) {
  return n < kLeastSegment ? 0 : std::min(kMostChanges, n / kLeastSegment - 1);
}

/// Computes the sum of squares around the mean of any part, from prefix sums of the centred values.
class PartCosts {
 public:
  explicit PartCosts(std::span<const double> values)
      : sums_(values.size() + 1), squares_(values.size() + 1) {
    const double centre = mean(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i] - centre;
      sums_[i + 1] = sums_[i] + x;
      squares_[i + 1] = squares_[i] + x * x;
    }
  }
  double operator()(std::size_t begin, std::size_t end) const {
    const double sum = sums_[end] - sums_[begin];
    return std::max(0.,
                    squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin));
  }

 private:
  std::vector<double> sums_, squares_;
};

/// Returns for each number of changes the explained sum of squares divided by the residual one.
std::vector<double> explained(const std::vector<Division>& divisions, std::size_t n,
                              double least_variance) {
  std::vector<double> shares;
  for (std::size_t m = 1; m < divisions.size(); ++m) {
    const double before = divisions.front().residual, after = divisions[m].residual;
    const double left = std::max(after, static_cast<double>(n - m - 1) * least_variance);
    shares.push_back(before <= after ? 0
                     : left > 0      ? (before - after) / left
                                     : std::numeric_limits<double>::infinity());
  }
  return shares;
}

std::vector<double> normal_row(std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  for (double& value : values) value = normal(random);
  return values;
}

/// Returns the share of values that are at least this one, where the row itself counts with the
/// values in `sorted`.
double upper_share(const std::vector<double>& sorted, double value) {
  const auto above = sorted.end() - std::ranges::lower_bound(sorted, value);
  return static_cast<double>(1 + above) / static_cast<double>(1 + sorted.size());
}

}  // namespace

std::vector<Division> best_divisions(std::span<const double> values) {
  const std::size_t n = values.size(), most = most_changes(n);
  const PartCosts cost(values);
  // least[m][j] is the least cost of the first j values with m changes, the last of which is at
  // last[m][j].
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(most + 1, std::vector<double>(n + 1, kNone));
  std::vector<std::vector<std::size_t>> last(most + 1, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t j = 1; j <= n; ++j) least[0][j] = cost(0, j);
  for (std::size_t m = 1; m <= most; ++m)
    for (std::size_t j = (m + 1) * kLeastSegment; j <= n; ++j)
      for (std::size_t i = m * kLeastSegment; i + kLeastSegment <= j; ++i)
        if (const double all = least[m - 1][i] + cost(i, j); all < least[m][j]) {
          least[m][j] = all;
          last[m][j] = i;
        }
  std::vector<Division> divisions;
  for (std::size_t m = 0; m <= most; ++m) {
    Division division{{}, n > 0 ? least[m][n] : 0};
    for (std::size_t k = m, end = n; k > 0; --k)
      division.firsts.insert(division.firsts.begin(), end = last[k][end]);
    divisions.push_back(std::move(division));
  }
  return divisions;
}

const ChangeTest::Null& ChangeTest::null_of(std::size_t n) {
  const auto [at, is_new] = nulls_.try_emplace(n);
  Null& null = at->second;
  if (!is_new) return null;
  std::mt19937_64 random(seed_ + n);
  std::vector<std::vector<double>> rows;
  for (int draw = 0; draw < draws_; ++draw)
    rows.push_back(explained(best_divisions(normal_row(n, random)), n, 0));
  null.explained.resize(most_changes(n));
  for (std::size_t m = 0; m < null.explained.size(); ++m) {
    for (const auto& row : rows) null.explained[m].push_back(row[m]);
    std::ranges::sort(null.explained[m]);
  }
  for (const auto& row : rows) {
    double least = 1;
    for (std::size_t m = 0; m < row.size(); ++m)
      least = std::min(least, upper_share(null.explained[m], row[m]));
    null.least_p.push_back(least);
  }
  std::ranges::sort(null.least_p);
  return null;
}

double ChangeTest::p(std::span<const double> values, double least_variance) {
  if (most_changes(values.size()) == 0) return 1;
  const std::vector<double> found =
      explained(best_divisions(values), values.size(), least_variance);
  if (std::ranges::all_of(found, [](double share) { return share == 0; })) return 1;
  const Null& null = null_of(values.size());
  double least = 1;
  for (std::size_t m = 0; m < found.size(); ++m)
    least = std::min(least, upper_share(null.explained[m], found[m]));
  const auto as_small = std::ranges::upper_bound(null.least_p, least) - null.least_p.begin();
  return static_cast<double>(1 + as_small) / static_cast<double>(1 + null.least_p.size());
}

double ChangeTest::power_at(std::size_t n, double step, double alpha) {
  std::mt19937_64 random(~seed_);
  int found = 0;
  for (int draw = 0; draw < kPowerDraws; ++draw) {
    std::vector<double> row = normal_row(n, random);
    for (std::size_t i = n / 2; i < n; ++i) row[i] += step;
    found += p(row) <= alpha;
  }
  return static_cast<double>(found) / kPowerDraws;
}

double ChangeTest::smallest_step(std::size_t n, double alpha, double power) {
  double low = 0.1, high = 1e4;  // doubling, then halving to 1 %
  while (high / low > 1.01) {
    const double middle = std::sqrt(low * high);
    (power_at(n, middle, alpha) >= power ? high : low) = middle;
  }
  return high;
}

std::vector<std::size_t> find_levels(std::span<const double> values, double alpha,
                                     double least_variance, ChangeTest& test) {
  if (test.p(values, least_variance) > alpha) return {};
  const std::vector<Division> divisions = best_divisions(values);
  std::vector<std::size_t> all;
  for (std::size_t m = 1; m < divisions.size(); ++m) {
    std::vector<std::size_t> firsts = divisions[m].firsts;
    all.clear();
    std::size_t begin = 0;
    firsts.push_back(values.size());
    for (const std::size_t end : firsts) {
      for (const std::size_t first :
           find_levels(values.subspan(begin, end - begin), alpha, least_variance, test))
        all.push_back(begin + first);
      if (end < values.size()) all.push_back(end);
      begin = end;
    }
    if (all.size() == m) break;
  }
  return all;
}

}  // namespace scalemark
