// Recognises from start times how the launches of two sets were ordered, and whether the order can
// be told from the build: a launch that always comes second differs by its place as well, and one
// set of launches that came later on the whole differs by what a drift did until then.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace scalemark {

/// How the launches of two sets lie in time.
enum class LaunchDesign {
  unknown,   ///< too few launches, or a time that is not told
  together,  ///< both launches of a pair at the same time
  pairs,     ///< one launch of a pair after the other, pair after pair
  apart,     ///< all of one set before all of the other
  mixed      ///< anything else
};

/// What start times tell of two sets.
struct LaunchOrder {
  LaunchDesign design = LaunchDesign::unknown;
  std::size_t base_first = 0, fresh_first = 0;  ///< pairs by which launch came first
  /// What the second launch of a pair differs by, as the half of the difference of the log ratios
  /// of both orders; and p of "nothing" (permutation test). Unset below two pairs of an order.
  std::optional<double> second_differs{}, p{};
  bool declared = false;  ///< the k-th launches of both were declared to be pairs

  std::size_t pairs() const { return base_first + fresh_first; }
  /// Whether an effect of the order would count as one of the build: of `pairs` nearly all (all but
  /// one in ten) have the same launch first, or of declared pairs one set lies before the other.
  bool confounded() const;
  /// Whether one launch came first in more than two of three pairs.
  bool is_unbalanced() const;
  /// Whether the second launch differs, at level `alpha`, and the pairs that one order has more
  /// make half of the difference or more of that; of a difference below `least`, half of that.
  bool hides(double difference, double least, double alpha) const;
};

/// Launches of a pair are together where they start within this share of the time from one pair to
/// the next.
inline constexpr double kTogether = 0.25;

/// Returns the order of two sets whose k-th launches are pairs, from their start times in seconds.
/// `log_ratios`: of the pairs, or empty. Both sets have the same number of launches.
LaunchOrder order_of_pairs(std::span<const double> base, std::span<const double> fresh,
                           std::span<const double> log_ratios);

/// Returns the order of two sets that were not declared to be pairs. Where both have as many
/// launches and the k-th of both always come before any k+1-th, they are taken for pairs. NaN is a
/// time that is not told.
LaunchOrder order_of_sets(std::span<const double> base, std::span<const double> fresh);

/// What a drift of the machine makes of the difference of two sets.
struct SetDrift {
  double p = 1;      ///< of no trend within the sets (Mann-Kendall)
  double makes = 0;  ///< of log(fresh / base): the trend from the mean time of one to the other's

  /// Whether there is a trend, at level `alpha`, that makes half of the difference or more; of a
  /// difference below `least`, half of that.
  bool hides(double difference, double least, double alpha) const;
};

/// Returns the drift of two sets by their start times in seconds and the logarithms of their rates.
/// A trend is one of both sets, each about its own mean. Nothing where a set has fewer than two
/// launches, a time is not told, or more time lies between the sets than either took: what a trend
/// came to by then is not known.
std::optional<SetDrift> drift_of_sets(std::span<const double> base_times,
                                      std::span<const double> base,
                                      std::span<const double> fresh_times,
                                      std::span<const double> fresh);

}  // namespace scalemark
