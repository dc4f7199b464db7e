// Whether values that were measured one after the other rise or fall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "measure/permutation.hpp"
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

// Changes of level in values that were measured one after the other, few as they may be.

/// Values that it takes to call them a level: a single odd one is none.
inline constexpr std::size_t kLeastSegment = 2;
/// Changes that are looked for at a time; a part between them is looked through again.
inline constexpr std::size_t kMostChanges = 4;

/// Values in parts of one level each.
struct Division {
  std::vector<std::size_t> firsts;  ///< of every part but the first, ascending
  double residual = 0;              ///< sum of squares around the means of the parts
};

/// Of 0, 1, ... kMostChanges changes, as far as parts of kLeastSegment values allow, the division
/// with the least residual (dynamic programming, Auger and Lawrence 1989).
std::vector<Division> best_divisions(std::span<const double> values);

/// Tests that values are normal noise around one level. Of each number of changes m: what the best
/// division explains over what it leaves, (R_0 - R_m) / R_m, which depends on the number of values
/// alone and not on their variance; p is the share of drawn rows whose most striking m is as
/// striking. Keeps what it has drawn, so that one object serves many rows.
class ChangeTest {
 public:
  explicit ChangeTest(int draws = kDrawnAssignments, std::uint64_t seed = 1)
      : draws_(draws), seed_(seed) {}

  /// `least_variance`: below which that of a value can't be, however alike they are; only ever
  /// raises p. 1 below 2 x kLeastSegment values.
  double p(std::span<const double> values, double least_variance = 0);

  /// The least step in the middle of n values, in standard deviations of one, that is found at
  /// level `alpha` with probability `power` (by simulation).
  double smallest_step(std::size_t n, double alpha, double power);

 private:
  struct Null {
    std::vector<std::vector<double>> explained;  ///< [m - 1], ascending
    std::vector<double> least_p;                 ///< over m, ascending
  };
  const Null& null_of(std::size_t n);
  double power_at(std::size_t n, double step, double alpha);

  int draws_;
  std::uint64_t seed_;
  std::map<std::size_t, Null> nulls_;
};

/// Where levels begin, ascending: the fewest changes between which the test finds no other at
/// `alpha`. Rows without a change have none in at least 1 - alpha of cases.
std::vector<std::size_t> find_levels(std::span<const double> values, double alpha,
                                     double least_variance, ChangeTest& test);

}  // namespace scalemark
