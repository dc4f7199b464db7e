// Finds launches that are far slower than the others of their set, and tests whether the new set
// has a larger share of them. A robust mean ignores such launches, a user does not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace scalemark {

/// A launch is slow where it lies below the median of its set by more than this many robust
/// standard deviations (1.4826 x the median deviation of both sets from their medians) and by more
/// than the least difference that matters.
inline constexpr double kSlowDeviations = 5;

/// The slow launches of both sets, by index.
struct SlowLaunches {
  double cut = 0;  ///< distance from the median beyond which a launch is slow
  std::vector<std::size_t> base, fresh;
  /// One-sided exact p that the share of slow launches is no larger in the new set. It is 1 where
  /// the new set has none.
  double p = 1;
};

/// Compares two sets of logarithms of rates by Fisher's exact test (1935) of the numbers of slow
/// launches. `least` is the least distance that matters. Each set must have at least 1 value.
SlowLaunches slow_launches(std::span<const double> base, std::span<const double> fresh,
                           double least);

/// The same of log ratios of pairs (new / base): in a pair beyond the cut on one side the new
/// launch is slow, on the other side that of the base. p is that of the sign test of these pairs.
SlowLaunches slow_pairs(std::span<const double> log_ratios, double least);

/// Returns the one-sided p of Fisher's exact test that `fresh` of `fresh_all` is no larger a share
/// than `base` of `base_all`.
double fisher_p(std::size_t base, std::size_t base_all, std::size_t fresh, std::size_t fresh_all);

}  // namespace scalemark
