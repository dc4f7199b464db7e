// Computes Hodges-Lehmann estimates of a centre and of a shift, with the intervals of the
// corresponding rank tests (Hodges and Lehmann 1963; Hollander, Wolfe and Chicken 2014, sections
// 3.2, 3.3, 4.2, 4.3).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "measure/permutation.hpp"

namespace scalemark {

/// Returns the median of the Walsh averages (x[i] + x[j]) / 2, i <= j, an estimate of the centre on
/// which outliers have little effect. Returns NaN for no values.
double hodges_lehmann(std::span<const double> x);
/// Returns the median of all b[j] - a[i], an estimate of the shift from a to b. Returns NaN for no
/// values.
double hodges_lehmann(std::span<const double> a, std::span<const double> b);

/// Returns an interval between two order statistics: of the Walsh averages by the exact null
/// distribution of Wilcoxon's signed-rank statistic, or of the differences of two samples by that
/// of the rank sum. Its confidence is at least `confidence`. Where few values do not allow that,
/// the widest interval is returned if it has at least confidence - kConfidenceSlack, else nullopt.
/// The work grows with the fourth power of the number of values, so use it for launches and not for
/// steps.
std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> x,
                                                     double confidence = 0.95);
std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> a,
                                                     std::span<const double> b,
                                                     double confidence = 0.95);

/// The rank-sum test (Mann and Whitney 1947) as a function of the assumed shift from a to b. The
/// distribution is exact for up to 400 pairs of values, beyond that normal. Values that are equal
/// after the shift count half.
class RankSumTest {
 public:
  RankSumTest(std::span<const double> a, std::span<const double> b);

  /// Returns p of "the shift is at most `assumed`".
  double greater_p(double assumed) const;
  /// Returns the least shift that greater_p() does not refuse at `level`, minus infinity where it
  /// refuses none.
  double least_shift(double level) const;

 private:
  std::vector<double> differences_;  ///< b[j] - a[i], in ascending order
  double rounding_ = 0;              ///< what rounding can make of equal differences
  std::vector<double> tail_;         ///< [u]: probability of u differences above 0, or more
};

}  // namespace scalemark
