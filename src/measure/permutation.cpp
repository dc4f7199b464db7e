// See permutation.hpp.
#include "measure/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "measure/permutation_tail.hpp"
#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;

/// Halvings of the bracket of a centre: to 1e-12 of its width.
constexpr int kHalvings = 40;

double sum_of(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double slack_of(std::span<const double> x, double shift) {
  double magnitudes = 0;
  for (const double value : x) magnitudes += std::abs(value) + std::abs(shift);
  return kRounding * magnitudes;
}

/// x - centre, winsorised.
Values moved_by(const Values& x, double centre) { return winsorised_magnitudes(minus(x, centre)); }

/// All values of a and then of b - shift, winsorised together.
Values pooled(const Values& a, const Values& b, double shift) {
  Values all = minus(b, shift);
  all.insert(all.begin(), a.begin(), a.end());
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

/// Flipping the signs of F leaves a sum as large as the observed one where the sum over F is not
/// above 0.
AssumedSums flipped_sums(const Values& x, double difference) {
  Values moved = moved_by(x, difference);
  const double squares = std::inner_product(moved.begin(), moved.end(), moved.begin(), 0.);
  const double mean = sum_of(moved) / 2, deviation = std::sqrt(squares) / 2;
  return {std::move(moved), slack_of(x, difference), mean, deviation};
}

/// Other values in the place of b have a sum at least that of b, after `shift` is taken from b.
AssumedSums exchanged_sums(const Values& a, const Values& b, double shift) {
  Values all = opposite_pooled(a, b, shift);
  const double limit = sum_of(std::span(all).subspan(a.size())) + slack_of(all, shift);
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const double mean_sum = m * mean(all);
  const double deviation = standard_deviation(all) * std::sqrt(n * m / (n + m));
  return {std::move(all), limit, mean_sum, deviation};
}

Values negated(std::span<const double> x) {
  Values y(x.begin(), x.end());
  for (double& value : y) value = -value;
  return y;
}

/// Both tails: `less` is that of the values with the opposite sign.
struct Tails {
  PermutationTail greater, less;
};

Tails sign_flip_tails(std::span<const double> x, const CountedAssignments& assignments) {
  const auto subsets = assignments.of_signs(x.size());
  const auto tail = [&](const Values& values) {
    return PermutationTail{subsets, x.size() > kMostExactValues ? 1. : 0.,
                           [values](double shift) { return flipped_sums(values, shift); }};
  };
  return {tail(Values(x.begin(), x.end())), tail(negated(x))};
}

Tails permutation_tails(std::span<const double> a, std::span<const double> b,
                        const CountedAssignments& assignments) {
  const auto subsets = assignments.of_samples(a.size(), b.size());
  const auto tail = [&](const Values& from, const Values& to) {
    return PermutationTail{subsets, a.size() + b.size() > kMostExactValues ? 1. : 0.,
                           [from, to](double shift) { return exchanged_sums(from, to, shift); }};
  };
  return {tail(Values(a.begin(), a.end()), Values(b.begin(), b.end())),
          tail(negated(a), negated(b))};
}

PermutationTest test_of(const Tails& tails, Alternative alternative, bool exact) {
  const double all = tails.greater.assignments();
  const auto p = [&](const PermutationTail& tail) { return tail.at_least(0) / all; };
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

/// Between the limits of both tails. `possible`: the least and the largest difference of subset
/// means; `centres`: of the values, and of those with the opposite sign.
std::optional<ExactInterval> interval_of(const Tails& tails, const Interval& possible,
                                         const Interval& centres, double confidence) {
  const double all = tails.greater.assignments();
  // The small number lets 0.025 x 40 be 1 in spite of rounding.
  const double refused = std::max(1., std::floor((1 - confidence) / 2 * all + 1e-9));
  const double attained = 1 - 2 * refused / all;
  if (attained < confidence - kConfidenceSlack) return std::nullopt;
  const auto [lowest, highest] = possible;
  if (lowest == highest) return ExactInterval{{lowest, lowest}, attained};
  const double width = highest - lowest;
  return ExactInterval{{lower_limit(tails.greater, lowest - width, centres.lo, refused),
                        -lower_limit(tails.less, -highest - width, centres.hi, refused)},
                       attained};
}

}  // namespace

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
                               const CountedAssignments& assignments) {
  if (differences.empty()) return {};
  return test_of(sign_flip_tails(differences, assignments), alternative,
                 differences.size() <= kMostExactValues);
}

PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 Alternative alternative, const CountedAssignments& assignments) {
  if (a.empty() || b.empty()) return {};
  return test_of(permutation_tails(a, b, assignments), alternative,
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
                                                const CountedAssignments& assignments) {
  if (x.empty()) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(x);
  return interval_of(sign_flip_tails(x, assignments), {lowest, highest},
                     {sign_flip_centre(x), sign_flip_centre(negated(x))}, confidence);
}

std::optional<ExactInterval> permutation_interval(std::span<const double> a,
                                                  std::span<const double> b, double confidence,
                                                  const CountedAssignments& assignments) {
  if (a.empty() || b.empty()) return std::nullopt;
  const auto [a_low, a_high] = std::ranges::minmax(a);
  const auto [b_low, b_high] = std::ranges::minmax(b);
  return interval_of(permutation_tails(a, b, assignments), {b_low - a_high, b_high - a_low},
                     {permutation_centre(a, b), permutation_centre(negated(a), negated(b))},
                     confidence);
}

}  // namespace scalemark
