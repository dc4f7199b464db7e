// Computes permutation tests of winsorised means, and the estimates and intervals that they imply.
#include "measure/permutation.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "measure/hodges_lehmann.hpp"
#include "measure/spreads.hpp"
#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;

/// The bracket of a centre is halved this often, to 1e-12 of its width.
constexpr int kHalvings = 40;

double sum_of(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double slack_of(std::span<const double> x, double shift) {
  double magnitudes = 0;
  for (const double value : x) magnitudes += std::abs(value) + std::abs(shift);
  return kRounding * magnitudes;
}

/// Returns x - centre, winsorised.
Values moved_by(const Values& x, double centre, double limit) {
  return limited(minus(x, centre), 0, limit);
}

/// Returns all values of a followed by those of b - shift, winsorised around their median. As the
/// shift grows, the median falls by no more than the values of b, so that those of a rise and those
/// of b fall: every sum of values in the place of b gains on that of b itself.
Values pooled(const Values& a, const Values& b, double shift, double limit) {
  Values all = minus(b, shift);
  all.insert(all.begin(), a.begin(), a.end());
  const double centre = median(all);
  return limited(std::move(all), centre, limit);
}

/// Returns the pooled values with the opposite sign, which turns sums that are at least large into
/// sums that are at most small.
Values opposite_pooled(const Values& a, const Values& b, double shift, double limit) {
  Values all = pooled(a, b, shift, limit);
  for (double& value : all) value = -value;
  return all;
}

/// Returns the point where a function that falls from lo to hi crosses 0.
double crossing(double lo, double hi, const std::function<double(double)>& falling) {
  for (int i = 0; i < kHalvings && lo < hi; ++i) {
    const double middle = (lo + hi) / 2;
    const double there = falling(middle);
    if (there == 0) return middle;
    (there > 0 ? lo : hi) = middle;
  }
  return (lo + hi) / 2;
}

/// Returns the sums to count where `difference` is assumed. Flipping the signs of a subset leaves a
/// sum at least as large as the observed one where the sum of that subset is not above 0.
AssumedSums flipped_sums(const Values& x, double difference, double limit) {
  Values moved = moved_by(x, difference, limit);
  const double squares = std::inner_product(moved.begin(), moved.end(), moved.begin(), 0.);
  const double mean = sum_of(moved) / 2, deviation = std::sqrt(squares) / 2;
  return {std::move(moved), slack_of(x, difference), mean, deviation};
}

/// Returns the sums to count where `shift` is assumed, that is after it is subtracted from b: those
/// of other values in the place of b, against the sum of b itself.
AssumedSums exchanged_sums(const Values& a, const Values& b, double shift, double limit_of_each) {
  Values all = opposite_pooled(a, b, shift, limit_of_each);
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

/// A one-sided test as a function of the assumed difference.
struct OneSided {
  PermutationTail tail;
  std::function<double(double)> p;  ///< of "the difference is at most the assumed one"
  /// Returns the least difference that is not refused, given one that is and one that is not, and
  /// the number of assignments that a refusal may take.
  std::function<double(double, double, double)> lower_limit;
};

/// Holds the tests of both sides. `less` is that of the values with the opposite sign.
struct BothSides {
  OneSided greater, less;
};

double halved(double below, double above, const std::function<bool(double)>& is_possible) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (below + above) / 2;
    (is_possible(middle) ? above : below) = middle;
  }
  return above;
}

/// The tests of one side that combined_pairs_p() takes of pairs.
struct PairTests {
  PermutationTail tail;
  Values differences;
  double centre;  ///< a shift from here on is not refused

  double p(double shift) const {
    const double all = tail.assignments();
    const std::size_t pairs = differences.size();
    double share = tail.at_least(shift) / all;
    if (pairs < kLeastStudentPairs) return share;
    if (pairs <= kMostStudentPairs)
      share = few_pairs_p(share, student_p(tail.assuming(shift).values), pairs);
    const double p = combined_pairs_p(share, student_p(minus(differences, shift)), pairs, all);
    return shift < centre ? p : std::max(p, 0.5);
  }

  /// Returns the least shift that none of the tests refuses.
  double least_shift(double below, double above, double refused) const {
    const std::size_t pairs = differences.size();
    if (pairs < kLeastStudentPairs) return lower_limit(tail, below, above, refused);
    const double level = refused / tail.assignments() * (1 + kRounding);
    if (pairs <= kMostStudentPairs)
      return halved(below, above, [&](double shift) { return p(shift) > level; });
    const double factor = pairs_factor(pairs), few = std::floor(refused / factor + 1e-9);
    double found = few < 1 ? below : lower_limit(tail, below, above, few);
    const auto student = student_test(differences);
    if (student) found = std::max(found, student->least_shift(level / factor));
    return std::clamp(found, below, above);
  }
};

OneSided sign_flip_side(const Values& x, const CountedAssignments& assignments) {
  const double observed = x.size() > kMostExactValues ? 1. : 0.;
  const double limit = winsor_limit(x);
  const PermutationTail tail{assignments.of_signs(x.size()), observed,
                             [x, limit](double shift) { return flipped_sums(x, shift, limit); }};
  const PairTests tests{tail, x, sign_flip_centre(x)};
  return {tail, [tests](double shift) { return tests.p(shift); },
          [tests](double below, double above, double refused) {
            return tests.least_shift(below, above, refused);
          }};
}

BothSides sign_flip_sides(std::span<const double> x, const CountedAssignments& assignments) {
  return {sign_flip_side(Values(x.begin(), x.end()), assignments),
          sign_flip_side(negated(x), assignments)};
}

/// The tests of one side that combined_p() takes of two samples.
struct SampleTests {
  PermutationTail tail;
  double centre;  ///< a shift from here on is not refused
  RankSumTest ranks;
  std::optional<StudentTest> welch;  ///< of samples of like sizes
  std::optional<StudentTest> guard;  ///< of samples that may be unlike

  double p(double shift) const {
    const double all = tail.assignments();
    std::optional<double> mean;
    if (welch) mean = welch->greater_p(shift);
    double p = combined_p(tail.at_least(shift) / all, ranks.greater_p(shift), mean, all);
    if (guard) p = std::max(p, guard->greater_p(shift));
    return shift < centre ? p : std::max(p, 0.5);
  }

  /// A shift is refused where one of the tests refuses it, and so does the guard.
  double least_shift(double below, double above, double refused) const {
    const double level = refused / tail.assignments();
    const double share = level * (1 + kRounding) / kCombinedSamples;
    const double part = kCombinedSamples * (welch ? kWinsorisedShare : 1);
    const double few = std::floor(refused / part + 1e-9);
    double found = ranks.least_shift(share);
    if (few >= 1) found = std::max(found, lower_limit(tail, below, above, few));
    if (welch) found = std::max(found, welch->least_shift(share));
    if (guard) found = std::min(found, guard->least_shift(level));
    return std::clamp(found, below, above);
  }
};

OneSided permutation_side(const Values& a, const Values& b, const CountedAssignments& assignments) {
  const double observed = a.size() + b.size() > kMostExactValues ? 1. : 0.;
  const double limit = winsor_limit(a, b);
  PermutationTail tail{assignments.of_samples(a.size(), b.size()), observed,
                       [a, b, limit](double shift) { return exchanged_sums(a, b, shift, limit); }};
  if (std::min(a.size(), b.size()) < kLeastStudentValues)
    return {tail, [tail](double shift) { return tail.at_least(shift) / tail.assignments(); },
            [tail](double below, double above, double refused) {
              return lower_limit(tail, below, above, refused);
            }};
  const SampleTests tests{tail, permutation_centre(a, b), RankSumTest(a, b), welch_test(a, b),
                          may_differ(a, b) ? winsorised_welch_test(a, b) : std::nullopt};
  return {tail, [tests](double shift) { return tests.p(shift); },
          [tests](double below, double above, double refused) {
            return tests.least_shift(below, above, refused);
          }};
}

BothSides permutation_sides(std::span<const double> a, std::span<const double> b,
                            const CountedAssignments& assignments) {
  return {permutation_side(Values(a.begin(), a.end()), Values(b.begin(), b.end()), assignments),
          permutation_side(negated(a), negated(b), assignments)};
}

PermutationTest test_of(const BothSides& sides, Alternative alternative, bool exact) {
  const double least = 1 / sides.greater.tail.assignments();
  switch (alternative) {
    case Alternative::greater:
      return {sides.greater.p(0), least, exact};
    case Alternative::less:
      return {sides.less.p(0), least, exact};
    case Alternative::two_sided:
      break;
  }
  return {std::min(1., 2 * std::min(sides.greater.p(0), sides.less.p(0))), std::min(1., 2 * least),
          exact};
}

/// Returns the interval between the limits of both sides. `possible` holds the least and the
/// largest difference of subset means; `centres` holds the centre of the values and that of the
/// values with the opposite sign.
std::optional<ExactInterval> interval_of(const BothSides& sides, const Interval& possible,
                                         const Interval& centres, double confidence) {
  const double all = sides.greater.tail.assignments();
  // The small number makes 0.025 x 40 equal 1 in spite of rounding.
  const double refused = std::max(1., std::floor((1 - confidence) / 2 * all + 1e-9));
  const double attained = 1 - 2 * refused / all;
  if (attained < confidence - kConfidenceSlack) return std::nullopt;
  const auto [lowest, highest] = possible;
  if (lowest == highest) return ExactInterval{{lowest, lowest}, attained};
  const double width = highest - lowest;
  return ExactInterval{{sides.greater.lower_limit(lowest - width, centres.lo, refused),
                        -sides.less.lower_limit(-highest - width, centres.hi, refused)},
                       attained};
}

}  // namespace

double sign_flip_centre(std::span<const double> x) {
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [lowest, highest] = std::ranges::minmax(x);
  const Values values(x.begin(), x.end());
  const double limit = winsor_limit(x);
  return crossing(lowest, highest,
                  [&](double centre) { return sum_of(moved_by(values, centre, limit)); });
}

double permutation_centre(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto [a_low, a_high] = std::ranges::minmax(a);
  const auto [b_low, b_high] = std::ranges::minmax(b);
  const Values ours(a.begin(), a.end()), theirs(b.begin(), b.end());
  const double limit = winsor_limit(a, b);
  return crossing(b_low - a_high, b_high - a_low, [&](double shift) {
    const Values all = pooled(ours, theirs, shift, limit);
    return mean(std::span(all).subspan(a.size())) - mean(std::span(all).first(a.size()));
  });
}

double combined_p(double winsorised, double ranks, std::optional<double> welch,
                  double assignments) {
  const double least = welch ? std::min({kWinsorisedShare * winsorised, ranks, *welch})
                             : std::min(winsorised, ranks);
  return std::clamp(kCombinedSamples * least, 1 / assignments, 1.);
}

double pairs_factor(std::size_t pairs) { return pairs <= kMostStudentPairs ? 1.2 : 4. / 3; }

double combined_pairs_p(double winsorised, double student, std::size_t pairs, double assignments) {
  return std::clamp(pairs_factor(pairs) * std::min(winsorised, student), 1 / assignments, 1.);
}

double few_pairs_p(double share, double student, std::size_t pairs) {
  return std::max(std::exp2(-static_cast<double>(pairs)), std::sqrt(share * student));
}

double student_p(std::span<const double> values) {
  const double centre = mean(values), deviation = standard_deviation(values);
  if (!(deviation > kRounding * std::abs(centre))) return centre > 0 ? 0 : 1;
  const auto n = static_cast<double>(values.size());
  return StudentTest{centre, deviation / std::sqrt(n), n - 1}.greater_p(0);
}

PermutationTest sign_flip_test(std::span<const double> differences, Alternative alternative,
                               const CountedAssignments& assignments) {
  if (differences.empty()) return {};
  return test_of(sign_flip_sides(differences, assignments), alternative,
                 differences.size() <= kMostExactValues);
}

PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 Alternative alternative, const CountedAssignments& assignments) {
  if (a.empty() || b.empty()) return {};
  return test_of(permutation_sides(a, b, assignments), alternative,
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
  return interval_of(sign_flip_sides(x, assignments), {lowest, highest},
                     {sign_flip_centre(x), sign_flip_centre(negated(x))}, confidence);
}

std::optional<ExactInterval> permutation_interval(std::span<const double> a,
                                                  std::span<const double> b, double confidence,
                                                  const CountedAssignments& assignments) {
  if (a.empty() || b.empty()) return std::nullopt;
  const auto [a_low, a_high] = std::ranges::minmax(a);
  const auto [b_low, b_high] = std::ranges::minmax(b);
  return interval_of(permutation_sides(a, b, assignments), {b_low - a_high, b_high - a_low},
                     {permutation_centre(a, b), permutation_centre(negated(a), negated(b))},
                     confidence);
}

namespace {

/// The bracket of a limit is halved this often, to 1e-12 of its width.
constexpr int kLimitHalvings = 40;
/// The limit by the normal approximation is halved this often; more halvings make it no better.
constexpr int kApproximateHalvings = 14;
constexpr int kMostApproaches = 6;
/// Up to this number of assignments, counting all of them is as fast as the approach.
constexpr double kFewAssignments = 2048;
/// A window holds at most this many assignments, and at most this share of all.
constexpr double kMostInWindow = 32'768, kShareInWindow = 0.125;
/// A window is opened where the limit is this many times closer than the edge of the window.
constexpr double kWithinWindow = 4;
/// A window with at most this many assignments is not made smaller.
constexpr double kFewInWindow = 64;
/// The normal approximation is trusted where its score differs from that at the limit by at least
/// this much, or by at least this share of what the slope predicts, whichever is less.
constexpr double kFarScore = 0.5, kFarShare = 0.3;

/// Returns an upper bound of how much the sum of any subset can move relative to the limit.
double most_change(const AssumedSums& from, const AssumedSums& to) {
  double up = from.limit - to.limit, down = up;
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const double change = to.values[i] - from.values[i];
    (change > 0 ? up : down) += change;
  }
  return std::max(std::abs(up), std::abs(down)) * (1 + 1e-6);  // more than rounding
}

double normal_score(const AssumedSums& sums) { return (sums.limit - sums.mean) / sums.deviation; }

/// Holds the assignments whose sums lie near the limit at one assumed difference.
struct TailWindow {
  AssumedSums at;
  double band = 0;  ///< how near
  SubsetSplit split;

  /// Returns whether at the difference `there` all other assignments lie on the same side of the
  /// limit as at the difference of the window.
  bool covers(const AssumedSums& there) const { return most_change(at, there) <= band; }
  double at_most(const AssumedSums& there) const {
    return split.below + split.near->at_most(there.values, there.limit);
  }
};

/// Holds what the approach to a limit has found.
struct NearLimit {
  double difference = 0, score = 0, slope = 0;  ///< by the normal approximation
  TailWindow window;
  Interval known = {0, 0};  ///< refused at lo, possible at hi

  /// Returns whether the normal approximation is clearly lower at `there` than at `difference`
  /// where `there` is on its left, or clearly higher where it is on its right.
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
    if ((left && possible) || (right && !possible)) near_.reset();  // this is another limit
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
    const double all = tail_.assignments();
    const double share = (std::clamp(count, 1., all) - 0.5) / all;
    return boost::math::quantile(boost::math::normal(), share);
  }

  /// Applies Newton's method to the normal scores of the counts, in which the tail is nearly a
  /// straight line.
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

  /// Returns the difference where the normal approximation has this score.
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

  /// Opens a window of about `size` assignments, which the normal approximation estimates.
  std::optional<TailWindow> opened(const AssumedSums& sums, double size) const {
    const double density =
        boost::math::pdf(boost::math::normal(), normal_score(sums)) / sums.deviation;
    const double band = size / (2 * density * tail_.assignments());
    auto split = tail_.subsets->split(sums.values, sums.limit, band);
    if (!split) return std::nullopt;
    return TailWindow{sums, band, *std::move(split)};
  }

  /// Counts at both edges of the window. Without a limit between them the window is useless and is
  /// dropped.
  void look_at_edges() {
    const double middle = near_->difference;
    double step = (bracket_.hi - bracket_.lo) / 2;
    while (step > 0 && !(near_->window.covers(tail_.assuming(middle - step)) &&
                         near_->window.covers(tail_.assuming(middle + step))))
      step /= 2;
    const bool low = is_possible(middle - step), high = is_possible(middle + step);
    if (low || !high) near_.reset();
  }

  /// Narrows the window to the assignments that can change sides between the known differences.
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
