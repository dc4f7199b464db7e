// Whether values that were measured one after the other rise or fall.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "measure/statistics.hpp"

namespace scalemark {

/// Values up to which p counts all orders, where no two are alike.
inline constexpr std::size_t kMostExactTrend = 50;
/// Values up to which the slope is that of all pairs.
inline constexpr std::size_t kMostPairedTrend = 1000;

struct TrendTest {
  double s = 0;       ///< Kendall's S: later values that are larger less those that are smaller
  double p = 1;       ///< two-sided
  bool exact = true;  ///< false: the normal approximation
  double change = 0;  ///< Sen's slope times the span from first to last, in the unit of the values
};

/// Mann-Kendall test (Mann 1945; Kendall 1975) of values in their order. p is the share of all
/// orders whose |S| is at least the observed one; of more than kMostExactTrend values, or where
/// some are alike, that of the normal distribution with the variance of S for ties. Sen's slope
/// (Sen 1968): the median over pairs of the difference per time; of more than kMostPairedTrend
/// values over the pairs that are half of them apart (Theil 1950, "incomplete method"). `times`: as
/// many as values, ascending; pairs of one time have no slope. Fewer than 3 values have no trend.
TrendTest find_trend(std::span<const double> times, std::span<const double> values);

// Whether what a run measures rises or falls while it is measured.

/// Values below which nothing is said.
inline constexpr std::size_t kLeastDrift = 12;
/// As many as a long run is best cut into: more are more alike, fewer tell less.
inline constexpr std::size_t kDriftValues = 60;

struct RunDrift {
  double change = 0;           ///< mean of the last third less that of the first, of that of all
  Interval ci95{0, 0};         ///< of it
  double p = 1;                ///< two-sided, that there is none
  double autocorrelation = 0;  ///< of neighbours, as far as it is positive
};

/// Welch's t of the two thirds with the variance that an autoregressive series of order 1 gives
/// their means. Its variance and autocorrelation r are those of the differences over one and over
/// two places, whose mean squares are as 1 - r to 1 - r^2, without the median difference and the
/// largest ones: so that neither a slope nor a step counts as noise. Degrees of freedom
/// (n / 2 - 1) (1 - r) / (1 + r), at least 2. `values` of equal lengths of time, in their order;
/// nullopt for fewer than kLeastDrift, or where their mean is not above 0.
std::optional<RunDrift> find_drift(std::span<const double> values);

}  // namespace scalemark
