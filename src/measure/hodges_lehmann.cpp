// Computes Hodges-Lehmann estimates and intervals from the exact null distributions of rank
// statistics.
#include "measure/hodges_lehmann.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace scalemark {
namespace {

using Values = std::vector<double>;

Values walsh_averages(std::span<const double> x) {
  Values averages;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = i; j < x.size(); ++j) averages.push_back((x[i] + x[j]) / 2);
  return averages;
}

Values differences(std::span<const double> a, std::span<const double> b) {
  Values all;
  for (const double from : a)
    for (const double to : b) all.push_back(to - from);
  return all;
}

/// Element [w] of the result is the probability that the signed-rank statistic of n values is w.
/// Each rank is included or not.
Values signed_rank_distribution(std::size_t n) {
  Values p(n * (n + 1) / 2 + 1, 0);
  p[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank)
    for (std::size_t w = p.size(); w-- > 0;) p[w] = (p[w] + (w >= rank ? p[w - rank] : 0)) / 2;
  return p;
}

/// Element [u] of the result is the probability that in u of the n m pairs the value of the second
/// sample is below that of the first. The pooled order is built value by value from what is left of
/// both samples. p[k][u] is the probability after k values of the second sample; a value of the
/// first sample is above all k of them.
Values rank_sum_distribution(std::size_t n, std::size_t m) {
  std::vector<Values> p(m + 1, Values(n * m + 1, 0));
  p[0][0] = 1;
  for (std::size_t drawn = 0; drawn < n + m; ++drawn) {
    std::vector<Values> next(m + 1, Values(n * m + 1, 0));
    const double left = static_cast<double>(n + m - drawn);
    for (std::size_t k = 0; k <= std::min(m, drawn); ++k) {
      if (drawn - k > n) continue;
      const double second = static_cast<double>(m - k) / left;
      for (std::size_t u = 0; u <= n * m; ++u) {
        if (p[k][u] == 0) continue;
        if (k < m) next[k + 1][u] += p[k][u] * second;
        if (drawn - k < n) next[k][u + k] += p[k][u] * (1 - second);
      }
    }
    p = std::move(next);
  }
  return p[m];
}

/// Returns the interval from the c-th smallest to the c-th largest value, where c is the largest
/// number whose tails have (1 - confidence) / 2 each, and at least 1.
std::optional<ExactInterval> between_order_statistics(Values values, const Values& distribution,
                                                      double confidence) {
  const double tail = (1 - confidence) / 2 + 1e-12;
  std::size_t c = 1;
  double below = distribution[0];  // P(statistic < c)
  while (c < distribution.size() && below + distribution[c] <= tail) below += distribution[c++];
  const double attained = 1 - 2 * below;
  if (attained < confidence - kConfidenceSlack || 2 * c > values.size() + 1) return std::nullopt;
  std::ranges::sort(values);
  return ExactInterval{{values[c - 1], values[values.size() - c]}, attained};
}

/// Up to this number of pairs of values the distribution of the rank sum is exact.
constexpr std::size_t kMostExactPairs = 400;

/// The same as rank_sum_distribution(), from the normal one with continuity correction, of the
/// upper tail.
Values rank_sum_tail(std::size_t n, std::size_t m) {
  const std::size_t pairs = n * m;
  Values tail;
  if (pairs <= kMostExactPairs) {
    tail = rank_sum_distribution(n, m);
    for (std::size_t u = pairs; u-- > 0;) tail[u] += tail[u + 1];
    return tail;
  }
  const auto all = static_cast<double>(pairs);
  const double deviation = std::sqrt(all * static_cast<double>(n + m + 1) / 12);
  for (double u = 0; u <= all; ++u)
    tail.push_back(std::erfc((u - 0.5 - all / 2) / (deviation * std::sqrt(2.))) / 2);
  return tail;
}

double largest_magnitude(std::span<const double> x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace

RankSumTest::RankSumTest(std::span<const double> a, std::span<const double> b)
    : differences_(differences(a, b)),
      rounding_(kRounding * (largest_magnitude(a) + largest_magnitude(b))),
      tail_(rank_sum_tail(a.size(), b.size())) {
  std::ranges::sort(differences_);
}

double RankSumTest::greater_p(double assumed) const {
  const double rounding = rounding_ + kRounding * std::abs(assumed);
  const auto first = std::ranges::lower_bound(differences_, assumed - rounding);
  const auto last = std::ranges::upper_bound(differences_, assumed + rounding);
  const auto above = static_cast<std::size_t>(differences_.end() - last);
  return std::min(1., tail_[above + static_cast<std::size_t>(last - first) / 2]);
}

double RankSumTest::least_shift(double level) const {
  const auto needed = std::ranges::find_if(tail_, [=](double p) { return p <= level; });
  if (needed == tail_.end()) return -std::numeric_limits<double>::infinity();
  const auto count = static_cast<std::size_t>(needed - tail_.begin());
  return count == 0 ? differences_.back() : differences_[differences_.size() - count];
}

double hodges_lehmann(std::span<const double> x) { return median(walsh_averages(x)); }

double hodges_lehmann(std::span<const double> a, std::span<const double> b) {
  return median(differences(a, b));
}

std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> x, double confidence) {
  if (x.empty()) return std::nullopt;
  return between_order_statistics(walsh_averages(x), signed_rank_distribution(x.size()),
                                  confidence);
}

std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> a,
                                                     std::span<const double> b, double confidence) {
  if (a.empty() || b.empty()) return std::nullopt;
  return between_order_statistics(differences(a, b), rank_sum_distribution(a.size(), b.size()),
                                  confidence);
}

}  // namespace scalemark
