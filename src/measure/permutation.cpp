// See permutation.hpp.
#include "measure/permutation.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

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

namespace {

/// Halvings of the bracket of a limit: to 1e-12 of its width.
constexpr int kLimitHalvings = 40;
/// Halvings after which the normal approximation is no better.
constexpr int kApproximateHalvings = 14;
constexpr int kMostApproaches = 6;
/// Assignments that are counted as fast as they are approached.
constexpr double kFewAssignments = 2048;
/// Assignments that a window holds, at most this share of all.
constexpr double kMostInWindow = 32'768, kShareInWindow = 0.125;
/// How many times closer than its edge the limit must lie where a window is opened.
constexpr double kWithinWindow = 4;
/// A window that holds as few is not made smaller.
constexpr double kFewInWindow = 64;
/// Normal scores away from the limit, or share of the way that the slope there makes of it, from
/// which on the normal approximation is believed.
constexpr double kFarScore = 0.5, kFarShare = 0.3;

/// How much the sum of any subset can move against the limit, at most.
double most_change(const AssumedSums& from, const AssumedSums& to) {
  double up = from.limit - to.limit, down = up;
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const double change = to.values[i] - from.values[i];
    (change > 0 ? up : down) += change;
  }
  return std::max(std::abs(up), std::abs(down)) * (1 + 1e-6);  // more than rounding
}

double normal_score(const AssumedSums& sums) { return (sums.limit - sums.mean) / sums.deviation; }

/// The assignments whose sums lie near the limit at one assumed difference.
struct TailWindow {
  AssumedSums at;
  double band = 0;  ///< how near
  SubsetSplit split;

  /// Whether all others are on the same side of the limit there.
  bool covers(const AssumedSums& there) const { return most_change(at, there) <= band; }
  double at_most(const AssumedSums& there) const {
    return split.below + split.near->at_most(there.values, there.limit);
  }
};

/// What the approach to a limit has found.
struct NearLimit {
  double difference = 0, score = 0, slope = 0;  ///< of the normal approximation
  TailWindow window;
  Interval known = {0, 0};  ///< refused at lo, possible at hi

  /// Whether the normal approximation falls to the left of `difference` and rises to the right.
  bool falls_or_rises_to(double there, const AssumedSums& sums) const {
    const double away = std::abs(there - difference);
    const double change = normal_score(sums) - score;
    return (there < difference ? -change : change) >= std::min(kFarScore, kFarShare * slope * away);
  }
};

class LimitSearch {
 public:
  LimitSearch(const PermutationTail& tail, Interval bracket, double refused)
      : tail_(tail), bracket_(bracket), refused_(refused) {}

  double find() {
    if (tail_.assignments() > kFewAssignments) approach();
    auto [below, above] = bracket_;
    for (int i = 0; i < kLimitHalvings; ++i) {
      const double middle = (below + above) / 2;
      (is_possible(middle) ? above : below) = middle;
    }
    return above;
  }

 private:
  bool is_possible(double difference) {
    const AssumedSums sums = tail_.assuming(difference);
    if (!near_) return is_possible(sums);
    if (near_->window.covers(sums)) return is_possible_nearby(difference, sums);
    const bool left = difference <= near_->known.lo, right = difference >= near_->known.hi;
    if ((left || right) && near_->falls_or_rises_to(difference, sums)) return right;
    const bool possible = is_possible(sums);
    if ((left && possible) || (right && !possible)) near_.reset();  // it is another limit
    return possible;
  }

  bool is_possible(const AssumedSums& sums) const {
    return tail_.observed + tail_.subsets->at_most(sums.values, sums.limit) > refused_;
  }

  bool is_possible_nearby(double difference, const AssumedSums& sums) {
    const bool possible = tail_.observed + near_->window.at_most(sums) > refused_;
    double& known = possible ? near_->known.hi : near_->known.lo;
    known = possible ? std::min(known, difference) : std::max(known, difference);
    narrow(sums);
    return possible;
  }

  double score_of(double count) const {
    return boost::math::quantile(boost::math::normal(), (count - 0.5) / tail_.assignments());
  }

  /// Newton's method on the normal scores of the counts, in which the tail is nearly a line.
  void approach() {
    const double wanted = score_of(refused_ + 1);
    const double size = std::min(kMostInWindow, kShareInWindow * tail_.assignments());
    double difference = approximate_limit(wanted), slope = approximate_slope(difference);
    double last_difference = 0, last_score = 0;
    for (int i = 0; i < kMostApproaches; ++i) {
      const AssumedSums sums = tail_.assuming(difference);
      if (!(difference > bracket_.lo) || !(difference < bracket_.hi) || !(sums.deviation > 0))
        return;
      const auto window = i > 0 ? opened(sums, size) : std::nullopt;
      const double count =
          tail_.observed +
          (window ? window->at_most(sums) : tail_.subsets->at_most(sums.values, sums.limit));
      if (window && std::abs(count - refused_) <= size / (2 * kWithinWindow)) {
        near_ = NearLimit{difference, normal_score(sums), slope, *window, bracket_};
        return look_at_edges();
      }
      const double score = score_of(count);
      if (i > 0 && score != last_score)
        slope = (score - last_score) / (difference - last_difference);
      last_difference = difference;
      last_score = score;
      difference += (wanted - score) / slope;
    }
  }

  /// Where the normal approximation has this score.
  double approximate_limit(double score) const {
    auto [below, above] = bracket_;
    for (int i = 0; i < kApproximateHalvings; ++i) {
      const double middle = (below + above) / 2;
      (normal_score(tail_.assuming(middle)) > score ? above : below) = middle;
    }
    return (below + above) / 2;
  }

  double approximate_slope(double difference) const {
    const double step = (bracket_.hi - difference) / 16;
    return (normal_score(tail_.assuming(difference + step)) -
            normal_score(tail_.assuming(difference - step))) /
           (2 * step);
  }

  /// Of about `size` assignments, by the normal approximation.
  std::optional<TailWindow> opened(const AssumedSums& sums, double size) const {
    const double density =
        boost::math::pdf(boost::math::normal(), normal_score(sums)) / sums.deviation;
    const double band = size / (2 * density * tail_.assignments());
    auto split = tail_.subsets->split(sums.values, sums.limit, band);
    if (!split) return std::nullopt;
    return TailWindow{sums, band, *std::move(split)};
  }

  /// As far to both sides as the window covers; without a limit between them it is of no use.
  void look_at_edges() {
    const double middle = near_->difference;
    double step = (bracket_.hi - bracket_.lo) / 2;
    while (step > 0 && !(near_->window.covers(tail_.assuming(middle - step)) &&
                         near_->window.covers(tail_.assuming(middle + step))))
      step /= 2;
    const bool low = is_possible(middle - step), high = is_possible(middle + step);
    if (low || !high) near_.reset();
  }

  /// To what can change sides between the differences that are known.
  void narrow(const AssumedSums& sums) {
    TailWindow& window = near_->window;
    if (window.split.near->size() <= kFewInWindow) return;
    const double band = std::max(most_change(sums, tail_.assuming(near_->known.lo)),
                                 most_change(sums, tail_.assuming(near_->known.hi)));
    if (band > window.band / 2) return;
    auto split = window.split.near->split(sums.values, sums.limit, band);
    if (!split) return;
    split->below += window.split.below;
    window = TailWindow{sums, band, *std::move(split)};
  }

  const PermutationTail& tail_;
  Interval bracket_;
  double refused_;
  std::optional<NearLimit> near_;
};

}  // namespace

double PermutationTail::at_least(double difference) const {
  const AssumedSums sums = assuming(difference);
  return observed + subsets->at_most(sums.values, sums.limit);
}

double lower_limit(const PermutationTail& tail, double below, double above, double refused) {
  return LimitSearch(tail, {below, above}, refused).find();
}

}  // namespace scalemark
