// Computes the Mann-Kendall test and Sen's slope.
#include "measure/trend.hpp"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <set>
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

/// The least p that is given: below lies nothing that a series can show.
constexpr double kLeastChangeP = 1e-12;

/// Returns an upper bound of p from the F distribution of one division with m changes, of which
/// there are at most C(n - 1, m), for each m.
double bound_of(const std::vector<double>& explained, std::size_t n) {
  double bound = 1, divisions = 1;
  for (std::size_t m = 1; m <= explained.size() && n > m + 1; ++m) {
    divisions *= static_cast<double>(n - m) / static_cast<double>(m);
    const double of_m = static_cast<double>(m), left = static_cast<double>(n - m - 1);
    const boost::math::fisher_f f(of_m, left);
    const double statistic = explained[m - 1] * left / of_m;
    if (!std::isfinite(statistic)) return kLeastChangeP;
    const double tail = boost::math::cdf(boost::math::complement(f, statistic));
    bound = std::min(bound, static_cast<double>(explained.size()) * divisions * tail);
  }
  return std::max(bound, kLeastChangeP);
}

// Long rows are searched by intervals.

struct Stretch {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Up to this length, an interval begins at every value: a dip of few values is found by one that
/// ends within it.
constexpr std::size_t kDenseInterval = 12;

/// Returns intervals of n values, the shortest first. Their lengths shrink by the root of 2, and
/// those of one length lie half of it apart, or 1 if they are short.
std::vector<Stretch> seeded_intervals(std::size_t n) {
  std::vector<Stretch> all;
  for (auto length = static_cast<double>(n); length >= 2. * kLeastSegment;
       length /= std::sqrt(2.)) {
    const auto size = static_cast<std::size_t>(std::ceil(length));
    const double apart = size <= kDenseInterval ? 1 : length / 2;
    const auto steps = static_cast<std::size_t>(std::ceil(static_cast<double>(n - size) / apart));
    for (std::size_t k = 0; k <= steps; ++k) {
      const std::size_t begin = steps == 0 ? 0 : k * (n - size) / steps;
      all.push_back({begin, begin + size});
    }
  }
  std::ranges::reverse(all);
  return all;
}

/// Returns the number of places where an interval of each may be divided.
double places_of(const std::vector<Stretch>& intervals) {
  double places = 0;
  for (const Stretch& one : intervals)
    places += static_cast<double>(one.size() - 2 * kLeastSegment + 1);
  return places;
}

/// Returns the variance of values around a level that seldom changes: that of the differences of
/// neighbours, from their median.
double variance_of_neighbours(std::span<const double> values) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  return std::pow(median_absolute_deviation_scaled(differences), 2) / 2;
}

/// A single value this many deviations from the median of itself and its neighbours is no level.
constexpr double kAlone = 6;

/// Returns the values, where those that lie far off alone are the median of themselves and their
/// neighbours. Steps, and levels of two values, stay as they are.
std::vector<double> without_single_values(std::span<const double> values) {
  std::vector<double> level(values.begin(), values.end());
  const double most = kAlone * std::sqrt(variance_of_neighbours(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t begin = std::clamp<std::size_t>(i, 1, values.size() - 2) - 1;
    const double middle = median(values.subspan(begin, 3));
    if (std::abs(values[i] - middle) > most) level[i] = middle;
  }
  return level;
}

/// A place that divides values into two parts, and their difference in standard errors.
struct Place {
  std::size_t at = 0;
  double z = 0;
};

/// Finds the place in an interval at which both parts differ most.
class LongRow {
 public:
  LongRow(std::span<const double> values, double least_variance)
      : level_(without_single_values(values)), cost_(level_), sums_(values.size() + 1) {
    const double centre = mean(level_);
    for (std::size_t i = 0; i < values.size(); ++i) sums_[i + 1] = sums_[i] + level_[i] - centre;
    variance_ = std::max(
        {variance_of_neighbours(values), least_variance, std::numeric_limits<double>::min()});
  }

  Place best_in(const Stretch& interval) const {
    Place best{interval.begin + kLeastSegment, 0};
    for (std::size_t at = interval.begin + kLeastSegment; at + kLeastSegment <= interval.end; ++at)
      if (const double z = z_at(interval, at); z > best.z) best = {at, z};
    return best;
  }

 private:
  double mean_of(std::size_t begin, std::size_t end) const {
    return (sums_[end] - sums_[begin]) / static_cast<double>(end - begin);
  }
  double variance_of_mean(std::size_t begin, std::size_t end) const {
    const auto n = static_cast<double>(end - begin);
    return std::max(variance_, cost_(begin, end) / (n - 1)) / n;
  }
  double z_at(const Stretch& interval, std::size_t at) const {
    return std::abs(mean_of(at, interval.end) - mean_of(interval.begin, at)) /
           std::sqrt(variance_of_mean(interval.begin, at) + variance_of_mean(at, interval.end));
  }

  std::vector<double> level_;
  PartCosts cost_;
  std::vector<double> sums_;
  double variance_ = 0;
};

double long_row_p(double z, double places) {
  return std::clamp(places * std::erfc(z / std::sqrt(2.)), kLeastChangeP, 1.);
}

double long_row_p(std::span<const double> values, double least_variance) {
  const LongRow row(values, least_variance);
  const std::vector<Stretch> intervals = seeded_intervals(values.size());
  double z = 0;
  for (const Stretch& interval : intervals) z = std::max(z, row.best_in(interval).z);
  return long_row_p(z, places_of(intervals));
}

/// Returns each change at the place between its neighbours at which both parts differ most.
std::vector<std::size_t> settled(const LongRow& row, const std::set<std::size_t>& firsts,
                                 std::size_t n) {
  std::vector<std::size_t> all(firsts.begin(), firsts.end());
  for (std::size_t k = 0; k < all.size(); ++k)
    all[k] = row.best_in({k > 0 ? all[k - 1] : 0, k + 1 < all.size() ? all[k + 1] : n}).at;
  return all;
}

std::vector<std::size_t> levels_of_long_row(std::span<const double> values, double alpha,
                                            double least_variance) {
  const LongRow row(values, least_variance);
  const std::vector<Stretch> intervals = seeded_intervals(values.size());
  const double places = places_of(intervals);
  std::set<std::size_t> firsts;
  for (const Stretch& interval : intervals) {
    const auto next = firsts.upper_bound(interval.begin);
    if (next != firsts.end() && *next < interval.end) continue;
    const Place best = row.best_in(interval);
    if (long_row_p(best.z, places) > alpha) continue;
    const auto after = firsts.lower_bound(best.at);
    const bool near = (after != firsts.end() && *after - best.at < kLeastSegment) ||
                      (after != firsts.begin() && best.at - *std::prev(after) < kLeastSegment);
    if (!near) firsts.insert(best.at);
  }
  return settled(row, firsts, values.size());
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
  if (values.size() > kMostDividedRow) return long_row_p(values, least_variance);
  const std::vector<double> found =
      explained(best_divisions(values), values.size(), least_variance);
  if (std::ranges::all_of(found, [](double share) { return share == 0; })) return 1;
  const Null& null = null_of(values.size());
  double least = 1;
  for (std::size_t m = 0; m < found.size(); ++m)
    least = std::min(least, upper_share(null.explained[m], found[m]));
  const auto as_small = std::ranges::upper_bound(null.least_p, least) - null.least_p.begin();
  const double drawn =
      static_cast<double>(1 + as_small) / static_cast<double>(1 + null.least_p.size());
  return as_small == 0 ? std::min(drawn, bound_of(found, values.size())) : drawn;
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
  if (n > kMostDividedRow) {
    const boost::math::normal normal;
    const double level = alpha / places_of(seeded_intervals(n)) / 2;
    const double z = boost::math::quantile(boost::math::complement(normal, level)) +
                     boost::math::quantile(normal, power);
    return 2 * z / std::sqrt(static_cast<double>(n));
  }
  const auto [at, is_new] = steps_.try_emplace({n, alpha, power}, 1e4);
  double low = 0.1, &high = at->second;  // doubling, then halving to 1 %
  while (is_new && high / low > 1.01) {
    const double middle = std::sqrt(low * high);
    (power_at(n, middle, alpha) >= power ? high : low) = middle;
  }
  return high;
}

std::vector<std::size_t> find_levels(std::span<const double> values, double alpha,
                                     double least_variance, ChangeTest& test) {
  if (values.size() > kMostDividedRow) return levels_of_long_row(values, alpha, least_variance);
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

namespace {

/// How much of a dip may be left when it is over.
constexpr double kLeftOfDip = 0.25;

double part_mean(std::span<const double> values, std::size_t begin, std::size_t end) {
  return mean(values.subspan(begin, end - begin));
}

/// Returns whether the part from starts[k] on is a dip or peak: a few values that go back.
bool goes_back(std::span<const double> values, const std::vector<std::size_t>& starts,
               std::size_t k) {
  if (k + 2 >= starts.size() || starts[k + 1] - starts[k] > kMostDip) return false;
  const double before = part_mean(values, starts[k - 1], starts[k]);
  const double here = part_mean(values, starts[k], starts[k + 1]);
  const double after = part_mean(values, starts[k + 1], starts[k + 2]);
  return std::abs(after - before) <= kLeftOfDip * std::abs(here - before);
}

/// Names the changes between levels, which begin at `firsts`.
std::vector<LevelChange> named_changes(std::span<const double> values,
                                       const std::vector<std::size_t>& firsts,
                                       double least_variance, ChangeTest& test) {
  std::vector<std::size_t> starts{0};
  starts.insert(starts.end(), firsts.begin(), firsts.end());
  starts.push_back(values.size());
  std::vector<LevelChange> changes;
  for (std::size_t k = 1; k + 1 < starts.size(); ++k) {
    LevelChange change;
    change.first = starts[k];
    change.end = starts[k + 1];
    const std::size_t begin = starts[k - 1];
    std::size_t end = change.end;
    const double here = part_mean(values, change.first, change.end);
    change.difference = here - part_mean(values, begin, change.first);
    change.goes_back = goes_back(values, starts, k);
    if (change.goes_back) {
      end = starts[k + 2];
      std::vector<double> around(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                 values.begin() + static_cast<std::ptrdiff_t>(change.first));
      around.insert(around.end(), values.begin() + static_cast<std::ptrdiff_t>(change.end),
                    values.begin() + static_cast<std::ptrdiff_t>(end));
      change.difference = here - mean(around);
      ++k;  // the way back belongs to it
    }
    change.p = test.p(values.subspan(begin, end - begin), least_variance);
    changes.push_back(change);
  }
  return changes;
}

/// Returns the sum of squares around the levels.
double residual_of(std::span<const double> values, const std::vector<std::size_t>& firsts) {
  std::size_t begin = 0;
  double sum = 0;
  for (std::size_t part = 0; part <= firsts.size(); ++part) {
    const std::size_t end = part < firsts.size() ? firsts[part] : values.size();
    const auto n = static_cast<double>(end - begin);
    sum += (n - 1) * std::pow(standard_deviation(values.subspan(begin, end - begin)), 2);
    begin = end;
  }
  return sum;
}

/// Returns the named changes without those that are no larger than the noise of the whole row makes
/// them: between two others few values may have had little of it. Takes their places from `firsts`.
std::vector<LevelChange> changes_outside_noise(std::span<const double> values, double alpha,
                                               double least_variance,
                                               std::vector<std::size_t>& firsts, ChangeTest& test) {
  std::vector<LevelChange> changes = named_changes(values, firsts, least_variance, test);
  while (changes.size() > 1) {
    const auto freedom = static_cast<double>(values.size() - firsts.size() - 1);
    const double pooled = residual_of(values, firsts) / freedom;
    changes = named_changes(values, firsts, std::max(least_variance, pooled), test);
    const auto worst = std::ranges::max_element(changes, {}, &LevelChange::p);
    if (worst->p <= alpha) break;
    std::erase(firsts, worst->first);
    if (worst->goes_back) std::erase(firsts, worst->end);
    changes = named_changes(values, firsts, least_variance, test);
  }
  return changes;
}

/// Returns the sum of squares around the line of Sen's slope.
double residual_of(std::span<const double> values, const TrendTest& trend) {
  std::vector<double> rest(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < rest.size(); ++i)
    rest[i] -= trend.change * static_cast<double>(i) / last;
  return residual_of(rest, std::vector<std::size_t>{});
}

}  // namespace

RowFindings find_changes(std::span<const double> values, double alpha, double least_variance,
                         ChangeTest& test) {
  RowFindings found;
  if (values.size() < 2 * kLeastSegment) return found;
  std::vector<double> level;
  if (values.size() > kMostDividedRow) {
    level = without_single_values(values);
    values = level;
  }
  const auto n = static_cast<double>(values.size());
  std::vector<double> times(values.size());
  std::iota(times.begin(), times.end(), 0);
  const TrendTest trend = find_trend(times, values);
  std::vector<std::size_t> firsts = find_levels(values, alpha / 2, least_variance, test);
  found.changes = changes_outside_noise(values, alpha / 2, least_variance, firsts, test);
  // A step takes a level and a place, a line its slope.
  const double freedom = std::max(1., n - 1 - 2 * static_cast<double>(firsts.size()));
  double variance = residual_of(values, firsts) / freedom;
  if (trend.p <= alpha / 2) {
    const double around_line = residual_of(values, trend) / (n - 2);
    if (firsts.empty() || around_line < variance) {
      found.drift = RowDrift{trend.change, trend.p};
      variance = around_line;
      found.changes.clear();
    }
  }
  found.deviation = std::sqrt(variance);
  return found;
}

}  // namespace scalemark
