// See permutation.hpp. Every assignment is counted without being listed: the values are cut in two
// halves, whose subset sums are kept sorted (Horowitz and Sahni 1974), so that 2^n assignments cost
// some 2^(n/2) steps.
#include "measure/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "measure/drawn_subsets.hpp"
#include "measure/winsorise.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;

/// Halvings of the bracket of a limit: to 1e-12 of its width.
constexpr int kHalvings = 40;

double sum_of(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double slack_of(std::span<const double> x, double shift) {
  double magnitudes = 0;
  for (const double value : x) magnitudes += std::abs(value) + std::abs(shift);
  return kRounding * magnitudes;
}

/// x - centre, winsorised.
Values moved_by(const Values& x, double centre) {
  Values moved = x;
  for (double& value : moved) value -= centre;
  return winsorised_magnitudes(std::move(moved));
}

/// All values of a and then of b - shift, winsorised together.
Values pooled(const Values& a, const Values& b, double shift) {
  Values all = a;
  for (const double value : b) all.push_back(value - shift);
  return winsorised_deviations(std::move(all));
}

/// With the opposite sign: sums that are at least large become sums that are at most small.
Values opposite_pooled(const Values& a, const Values& b, double shift) {
  Values all = pooled(a, b, shift);
  for (double& value : all) value = -value;
  return all;
}

/// Where a function that falls from lo to hi crosses 0.
double crossing(double lo, double hi, const std::function<double(double)>& falling) {
  for (int i = 0; i < kHalvings && lo < hi; ++i) {
    const double middle = (lo + hi) / 2;
    const double there = falling(middle);
    if (there == 0) return middle;
    (there > 0 ? lo : hi) = middle;
  }
  return (lo + hi) / 2;
}

/// Sorted union of `sums` and of `others` + x.
Values merged(const Values& sums, const Values& others, double x) {
  Values shifted = others, all(sums.size() + others.size());
  for (double& value : shifted) value += x;
  std::ranges::merge(sums, shifted, all.begin());
  return all;
}

/// Sorted sums of all subsets, the empty one included.
Values subset_sums(std::span<const double> x) {
  Values sums{0};
  for (const double value : x) sums = merged(sums, sums, value);
  return sums;
}

/// [k]: sorted sums of all subsets of k values.
std::vector<Values> subset_sums_by_size(std::span<const double> x) {
  std::vector<Values> sums(x.size() + 1);
  sums[0] = {0};
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t k = i + 1; k > 0; --k) sums[k] = merged(sums[k], sums[k - 1], x[i]);
  return sums;
}

/// Pairs of one value of each list, both sorted, whose sum is at most `limit`.
double pairs_at_most(const Values& a, const Values& b, double limit) {
  double count = 0;
  std::size_t fitting = b.size();
  for (const double value : a) {
    while (fitting > 0 && value + b[fitting - 1] > limit) --fitting;
    count += static_cast<double>(fitting);
  }
  return count;
}

/// The upper tail of a permutation distribution as a function of the difference that the null
/// hypothesis assumes; it rises with that.
struct Tail {
  double assignments = 1;                  ///< all of them, the observed one included
  std::function<double(double)> at_least;  ///< of them, those as large as the observed one
  double lowest = 0, highest = 0;          ///< of the means of subsets
  double centre = 0;                       ///< the estimate: a difference that is left possible
};

/// Flipping the signs of F leaves a sum as large as the observed one where the sum over F is not
/// above 0.
Tail sign_flip_tail(const Values& x, std::uint64_t seed) {
  const auto [lowest, highest] = std::ranges::minmax(x);
  const double centre = sign_flip_centre(x);
  if (x.size() <= kMostExactValues) {
    const auto count = [x](double difference) {
      const Values moved = moved_by(x, difference);
      const auto half = std::span(moved).first(x.size() / 2);
      const auto rest = std::span(moved).subspan(x.size() / 2);
      return pairs_at_most(subset_sums(half), subset_sums(rest), slack_of(x, difference));
    };
    return {std::exp2(static_cast<double>(x.size())), count, lowest, highest, centre};
  }
  const auto flipped = DrawnSubsets::by_coins(x.size(), kDrawnAssignments, seed);
  const auto count = [x, flipped](double difference) {
    return 1 + flipped.at_most(moved_by(x, difference), slack_of(x, difference));
  };
  return {1. + kDrawnAssignments, count, lowest, highest, centre};
}

/// How many choices of b.size() of all values have a sum at least that of b, after `shift` is taken
/// from b.
double divisions_at_least(const Values& a, const Values& b, double shift) {
  const Values all = opposite_pooled(a, b, shift);
  const double limit = sum_of(std::span(all).subspan(a.size())) + slack_of(all, shift);
  const auto left = subset_sums_by_size(std::span(all).first(all.size() / 2));
  const auto right = subset_sums_by_size(std::span(all).subspan(all.size() / 2));
  double count = 0;
  for (std::size_t k = 0; k < left.size() && k <= b.size(); ++k)
    if (b.size() - k < right.size()) count += pairs_at_most(left[k], right[b.size() - k], limit);
  return count;
}

Tail permutation_tail(const Values& a, const Values& b, std::uint64_t seed) {
  const auto [a_low, a_high] = std::ranges::minmax(a);
  const auto [b_low, b_high] = std::ranges::minmax(b);
  const double lowest = b_low - a_high, highest = b_high - a_low;
  const double centre = permutation_centre(a, b);
  if (a.size() + b.size() <= kMostExactValues)
    return {binomial(a.size() + b.size(), b.size()),
            [a, b](double shift) { return divisions_at_least(a, b, shift); }, lowest, highest,
            centre};
  const auto second = DrawnSubsets::of_size(a.size() + b.size(), b.size(), kDrawnAssignments, seed);
  const auto count = [a, b, second](double shift) {
    const Values all = opposite_pooled(a, b, shift);
    const double observed = sum_of(std::span(all).subspan(a.size()));
    return 1 + second.at_most(all, observed + slack_of(all, shift));
  };
  return {1. + kDrawnAssignments, count, lowest, highest, centre};
}

Values negated(std::span<const double> x) {
  Values y(x.begin(), x.end());
  for (double& value : y) value = -value;
  return y;
}

/// Both tails: `less` is that of the values with the opposite sign.
struct Tails {
  Tail greater, less;
};

Tails sign_flip_tails(std::span<const double> x, std::uint64_t seed) {
  return {sign_flip_tail(Values(x.begin(), x.end()), seed), sign_flip_tail(negated(x), seed)};
}

Tails permutation_tails(std::span<const double> a, std::span<const double> b, std::uint64_t seed) {
  return {permutation_tail(Values(a.begin(), a.end()), Values(b.begin(), b.end()), seed),
          permutation_tail(negated(a), negated(b), seed)};
}

PermutationTest test_of(const Tails& tails, Alternative alternative, bool exact) {
  const double all = tails.greater.assignments;
  const auto p = [&](const Tail& tail) { return tail.at_least(0) / all; };
  switch (alternative) {
    case Alternative::greater:
      return {p(tails.greater), 1 / all, exact};
    case Alternative::less:
      return {p(tails.less), 1 / all, exact};
    case Alternative::two_sided:
      break;
  }
  return {std::min(1., 2 * std::min(p(tails.greater), p(tails.less))), std::min(1., 2 / all),
          exact};
}

/// The least assumed difference that the tail leaves possible: from there on more than `refused`
/// assignments are as large as the observed one.
double lower_limit(const Tail& tail, double refused) {
  double below = tail.lowest - (tail.highest - tail.lowest), above = tail.centre;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (below + above) / 2;
    (tail.at_least(middle) > refused ? above : below) = middle;
  }
  return above;
}

std::optional<ExactInterval> interval_of(const Tails& tails, double confidence) {
  const double all = tails.greater.assignments;
  // The small number lets 0.025 x 40 be 1 in spite of rounding.
  const double refused = std::max(1., std::floor((1 - confidence) / 2 * all + 1e-9));
  const double attained = 1 - 2 * refused / all;
  if (attained < confidence - kConfidenceSlack) return std::nullopt;
  if (tails.greater.lowest == tails.greater.highest)
    return ExactInterval{{tails.greater.lowest, tails.greater.lowest}, attained};
  return ExactInterval{{lower_limit(tails.greater, refused), -lower_limit(tails.less, refused)},
                       attained};
}

}  // namespace

double binomial(std::size_t n, std::size_t k) {
  double ways = 1;
  for (std::size_t i = 1; i <= k; ++i)
    ways = ways * static_cast<double>(n - k + i) / static_cast<double>(i);
  return std::round(ways);
}

double sign_flip_centre(std::span<const double> x) {
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [lowest, highest] = std::ranges::minmax(x);
  const Values values(x.begin(), x.end());
  return crossing(lowest, highest, [&](double centre) { return sum_of(moved_by(values, centre)); });
}

double permutation_centre(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [a_low, a_high] = std::ranges::minmax(a);
  const auto [b_low, b_high] = std::ranges::minmax(b);
  const Values ours(a.begin(), a.end()), theirs(b.begin(), b.end());
  return crossing(b_low - a_high, b_high - a_low, [&](double shift) {
    const Values all = pooled(ours, theirs, shift);
    return mean(std::span(all).subspan(a.size())) - mean(std::span(all).first(a.size()));
  });
}

PermutationTest sign_flip_test(std::span<const double> differences, Alternative alternative,
                               std::uint64_t seed) {
  if (differences.empty()) return {};
  return test_of(sign_flip_tails(differences, seed), alternative,
                 differences.size() <= kMostExactValues);
}

PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 Alternative alternative, std::uint64_t seed) {
  if (a.empty() || b.empty()) return {};
  return test_of(permutation_tails(a, b, seed), alternative,
                 a.size() + b.size() <= kMostExactValues);
}

double least_sign_flip_p(std::size_t n) {
  if (n > kMostExactValues) return 2 / (1. + kDrawnAssignments);
  return std::min(1., 2 * std::exp2(-static_cast<double>(n)));
}

double least_permutation_p(std::size_t n, std::size_t m) {
  if (n + m > kMostExactValues) return 2 / (1. + kDrawnAssignments);
  return std::min(1., 2 / binomial(n + m, m));
}

std::optional<ExactInterval> sign_flip_interval(std::span<const double> x, double confidence,
                                                std::uint64_t seed) {
  if (x.empty()) return std::nullopt;
  return interval_of(sign_flip_tails(x, seed), confidence);
}

std::optional<ExactInterval> permutation_interval(std::span<const double> a,
                                                  std::span<const double> b, double confidence,
                                                  std::uint64_t seed) {
  if (a.empty() || b.empty()) return std::nullopt;
  return interval_of(permutation_tails(a, b, seed), confidence);
}

}  // namespace scalemark
