// Compares the spreads of two samples, and tests their shift where the spreads may differ.
#pragma once

#include <optional>
#include <span>

#include "measure/statistics.hpp"

namespace scalemark {

/// How the spreads of two samples compare.
struct Spreads {
  double ratio = 1;  ///< robust standard error of one value of b / that of a
  double p = 1;      ///< two-sided, that both are alike
  /// Whether to tell a reader that the spreads differ.
  bool differ() const { return p <= 0.05; }
};

/// Compares the distances of the values from the median of their own sample by their ranks (normal
/// approximation). The distance 0, which every sample of an odd number has, is left out. Ratio and
/// p do not change when a constant is added to one sample. Each sample must have at least 2 values.
Spreads spreads_of(std::span<const double> a, std::span<const double> b);

/// Whether the spreads may differ (at 20 %) or the sizes do (by more than a quarter), so that a
/// test that exchanges values must be held against one that allows for it. Chosen by simulation
/// (docs/gate.md, "Unlike spreads").
bool may_differ(std::span<const double> a, std::span<const double> b);

/// A test of a mean, or of the shift from one mean to another, by Student's t.
struct StudentTest {
  double shift = 0, error = 0, degrees_of_freedom = 1;

  /// Returns p of "the shift is at most `assumed`".
  double greater_p(double assumed) const;
  /// Returns the least shift that greater_p() does not refuse at `level`.
  double least_shift(double level) const;
};

/// The least number of values of each sample that is tested by Student's t.
inline constexpr std::size_t kLeastStudentValues = 5;

/// Returns the test of the mean of x. Returns nullopt where x has fewer than kLeastStudentValues,
/// or no spread.
std::optional<StudentTest> student_test(std::span<const double> x);
/// Returns the shift from the mean of a to that of b with Welch's error and degrees of freedom
/// (1947), of samples of at least 2 values. Returns nullopt where neither has a spread.
std::optional<StudentTest> welch_shift(std::span<const double> a, std::span<const double> b);
/// Returns Welch's test of the shift from a to b, which holds its level where their spreads
/// differ. Where the sizes differ by more than a quarter it does not hold it for skewed noise.
/// Returns nullopt there, where a sample has fewer than kLeastStudentValues, and where neither has
/// a spread.
std::optional<StudentTest> welch_test(std::span<const double> a, std::span<const double> b);
/// Returns Welch's test of samples that are winsorised each by itself, of any sizes.
std::optional<StudentTest> winsorised_welch_test(std::span<const double> a,
                                                 std::span<const double> b);

}  // namespace scalemark
