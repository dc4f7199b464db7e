// Tests whether values rise or fall in the order of their measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "measure/permutation.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

/// Up to this number of values, p counts all orders if no two values are equal.
inline constexpr std::size_t kMostExactTrend = 50;
/// Up to this number of values, the slope is the median over all pairs.
inline constexpr std::size_t kMostPairedTrend = 1000;

/// The result of a test for a trend.
struct TrendTest {
  double s = 0;       ///< Kendall's S: later values that are larger less those that are smaller
  double p = 1;       ///< two-sided
  bool exact = true;  ///< false: the normal approximation
  double change = 0;  ///< Sen's slope times the span from first to last, in the unit of the values
};

/// Runs the Mann-Kendall test (Mann 1945; Kendall 1975) on values in their order. p is the share of
/// all orders whose |S| is at least the observed one; for more than kMostExactTrend values, or with
/// equal values, it comes from the normal distribution with the variance of S for ties. The slope
/// is Sen's (Sen 1968): the median over pairs of the difference per time; for more than
/// kMostPairedTrend values, over the pairs that are half of the values apart (Theil 1950,
/// "incomplete method"). `times` has one ascending number for each value; pairs at one time have no
/// slope. Fewer than 3 values have no trend.
TrendTest find_trend(std::span<const double> times, std::span<const double> values);

// Detects whether the measured values rise or fall during a run.

/// Fewer values than this give no result.
inline constexpr std::size_t kLeastDrift = 12;
/// A long run is best cut into at most this many values. More values are more correlated, fewer
/// have less power.
inline constexpr std::size_t kDriftValues = 60;

/// The change of a run's values from its first to its last third.
struct RunDrift {
  double change = 0;           ///< mean of the last third less that of the first, of that of all
  Interval ci95{0, 0};         ///< 95 % interval of the change
  double p = 1;                ///< two-sided, that there is none
  double autocorrelation = 0;  ///< estimated correlation of neighbouring values; at least 0
};

/// Tests whether the first and the last third of `values` have different means: Welch's t with the
/// variance of the mean of an autoregressive series of order 1. The variance and the
/// autocorrelation r come from the differences over one and over two places, whose mean squares are
/// in the ratio 1 - r to 1 - r^2. The median difference is subtracted and the largest differences
/// are left out, so that neither a slope nor a step counts as noise. There are (n / 2 - 1) (1 - r)
/// / (1 + r) degrees of freedom, at least 2. The values cover equal lengths of time, in their
/// order. Returns nullopt for fewer than kLeastDrift values or where their mean is not above 0.
std::optional<RunDrift> find_drift(std::span<const double> values);

// Finds changes of level in a series of values in the order of their measurement, also where there
// are few values.

/// A level has at least this many values, so that a single outlier is no level.
inline constexpr std::size_t kLeastSegment = 2;
/// A search looks for at most this many changes at a time. A part between two of them is searched
/// again.
inline constexpr std::size_t kMostChanges = 4;
/// Up to this number of values all divisions are searched, and what noise makes of them is drawn.
/// Longer rows are searched by intervals, in a time that grows like n log(n).
inline constexpr std::size_t kMostDividedRow = 64;

/// Values divided into parts that have one level each.
struct Division {
  std::vector<std::size_t>
      firsts;           ///< index of the first value of every part except the first one, ascending
  double residual = 0;  ///< sum of squares around the means of the parts
};

/// Returns the division with the least residual for 0, 1, ... kMostChanges changes, as far as parts
/// of kLeastSegment values allow (dynamic programming, Auger and Lawrence 1989).
std::vector<Division> best_divisions(std::span<const double> values);

/// Tests whether values are normal noise around one level. For each number of changes m the
/// statistic is the explained sum of squares of the best division over its residual, (R_0 - R_m) /
/// R_m, which depends on the number of values and not on their variance. p is the share of drawn
/// rows whose most striking m is at least as striking. Where fewer than one drawn row in all is as
/// striking, it is Bonferroni's bound over all divisions, of the F distribution of one of them. The
/// object keeps the rows it has drawn and serves many series.
///
/// More than kMostDividedRow values are searched by the seeded intervals of Kovacs, Buehlmann, Li
/// and Munk (2023, "Seeded binary segmentation"): p is Bonferroni's over all places in all
/// intervals, of the normal distribution of the difference of both parts. Its variance is that of a
/// part, and at least that of the row, from the median difference of neighbours, so that one value
/// that lies far off is no part of its own.
class ChangeTest {
 public:
  explicit ChangeTest(int draws = kDrawnAssignments, std::uint64_t seed = 1)
      : draws_(draws), seed_(seed) {}

  /// Returns the p of one row of values. `least_variance` is a lower bound of their variance, which
  /// also holds where the values are nearly equal; it can only raise p. The result is 1 below 2 x
  /// kLeastSegment values.
  double p(std::span<const double> values, double least_variance = 0);

  /// Returns the least step in the middle of n values that is found at level `alpha` with
  /// probability `power`. It is in standard deviations of one value and comes from simulation.
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
  std::map<std::tuple<std::size_t, double, double>, double> steps_;
};

/// Returns the indices where levels begin, ascending: the fewest changes between which the test
/// finds no further change at `alpha`. Rows without a change give none with a probability of at
/// least 1 - alpha. Of more than kMostDividedRow values, they are the places of the shortest
/// intervals that show one.
std::vector<std::size_t> find_levels(std::span<const double> values, double alpha,
                                     double least_variance, ChangeTest& test);

/// A level of at most this many values after which the row goes back where it came from is a dip or
/// a peak. A longer one is a step, and another one back.
inline constexpr std::size_t kMostDip = 4;

/// A change of level, or a dip or peak.
struct LevelChange {
  std::size_t first = 0;   ///< index of the first value of the new level
  std::size_t end = 0;     ///< index behind its last value
  bool goes_back = false;  ///< a dip or peak
  double difference = 0;   ///< from the level before; of a dip or peak from those around it
  double p = 1;            ///< ChangeTest of its values and those around it
};

/// A steady change over a whole row of values.
struct RowDrift {
  double difference = 0;  ///< from the first value to the last: Sen's slope
  double p = 1;           ///< Mann-Kendall
};

/// What a row of values shows.
struct RowFindings {
  std::vector<LevelChange> changes;  ///< ascending
  std::optional<RowDrift> drift;     ///< then there are no changes: a line fits better than steps
  double deviation = 0;              ///< of a value around its level or the line
};

/// Finds changes of level, dips, peaks and drift in a row of values. Of normal values without any
/// of them at most `alpha` show one: half of it for changes (find_levels()), half for a drift.
/// `least_variance` is that of a value, as of ChangeTest.
RowFindings find_changes(std::span<const double> values, double alpha, double least_variance,
                         ChangeTest& test);

}  // namespace scalemark
