// See permutation_tail.hpp. Forty halvings would count tens of thousands of sums forty times. So
// the limit is approached along the normal approximation first. Near it only those assignments are
// looked at that can change sides there; far from it, where the approximation goes the way that the
// tail should, nothing is counted. What the halvings then find is what they always found.
#include "measure/permutation_tail.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <optional>

#include "measure/statistics.hpp"

namespace scalemark {
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
