// Whether values that were measured one after the other rise or fall.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace scalemark
