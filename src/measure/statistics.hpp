// Provides statistics of step times and repeats. Distributions come from Boost.Math.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace scalemark {

/// Two sums of doubles that differ by no more than this share of their magnitudes are equal except
/// for rounding.
inline constexpr double kRounding = 1e-12;

/// A closed interval.
struct Interval {
  double lo, hi;
};
/// Writes [lo, hi] into any kind of nlohmann's JSON.
template <typename J>
void to_json(J& json, const Interval& interval) {
  json = {interval.lo, interval.hi};
}

/// Subtracts the same constant from each value.
std::vector<double> minus(std::span<const double> x, double constant);

/// Returns the mean, or NaN for no values. All quantiles are NaN for no values too.
double mean(std::span<const double> x);
/// Returns the sample standard deviation (n - 1), or 0 for fewer than two values.
double standard_deviation(std::span<const double> x);
/// Returns the quantile q in [0, 1] by linear interpolation between order statistics (Hyndman-Fan
/// type 7).
double quantile(std::span<const double> x, double q);
double median(std::span<const double> x);
/// Returns 1.4826 x median |x - median(x)|, which tf_cnn_benchmarks calls jitter.
double median_absolute_deviation_scaled(std::span<const double> x);

/// Returns the quantile of Student's t that leaves (1 - confidence) / 2 on either side.
double student_quantile(double confidence, double degrees_of_freedom);

/// Returns the number of independent samples whose mean is as certain as that of these
/// autocorrelated ones. It is at most their number: negative correlation never makes an interval
/// narrower than that of independent samples.
double effective_sample_size(std::span<const double> x);

/// Returns the confidence interval of the mean of an autocorrelated stationary series. This is the
/// only interval estimator of scalemark for steps; docs/measurements.md states the method,
/// docs/coverage.md its coverage. Returns nullopt below 30 effective samples. A constant series has
/// an interval of width 0.
std::optional<Interval> mean_interval(std::span<const double> x, double confidence = 0.95);

/// Returns Student's t interval of the mean of independent values (repeats), or nullopt for fewer
/// than two.
std::optional<Interval> student_interval(std::span<const double> x, double confidence = 0.95);

/// 95 % interval of the geometric mean of positive values: Student's t on their logarithms, so that
/// ratios and their inverses are treated alike and no bound is negative. It reaches to `estimate`,
/// the number that the values are repeats of: the rate of all of them together lies far below their
/// mean where one took many times as long. nullopt for fewer than two.
std::optional<Interval> log_interval(const std::vector<double>& values, double estimate);

// Provides order statistics of the normal distribution, which tell how late the slowest of many
// ranks is.

/// Returns E[max of n independent standard normal values] for n >= 1 (0 for n = 1, 1 / sqrt(pi) for
/// 2). It integrates the density of the largest of n (David and Nagaraja 2003, "Order Statistics",
/// section 2.1) to a relative error of about 1e-10, for n up to 1e12. Throws std::domain_error for
/// n below 1.
double expected_maximum_of_normals(double n);

// Winsorises values, so that a launch that other load disturbed counts like one at the edge of the
// others.

/// The limit of a deviation in units of the median deviation, where tests count. It was chosen by
/// simulation (docs/gate.md, "Why this statistic").
inline constexpr double kWinsorLimit = 2;
inline constexpr std::size_t kLeastLimited = 5;

/// Returns kWinsorLimit x the median distance of the values from their median, or infinity where
/// that distance is 0 and below kLeastLimited values, which do not show what is far. It does not
/// change when a constant is added to all values, so that a test of any shift limits the values
/// alike, and p is monotone in the shift.
double winsor_limit(std::span<const double> x);
/// Returns the same of the distances of both samples, each from its own median; infinity where a
/// sample has fewer than kLeastLimited values. It does not change when a constant is added to one
/// of them.
double winsor_limit(std::span<const double> a, std::span<const double> b);

/// Limits the distance of each value from `centre` to `limit`.
std::vector<double> limited(std::vector<double> x, double centre, double limit);

/// How far the limit of winsorised_magnitudes() lies above the median magnitude, in units of the
/// median distance of the magnitudes from it.
inline constexpr double kMagnitudeLimit = 1;
/// Limits each magnitude to their median + kMagnitudeLimit x their median distance from it, and
/// keeps the sign. The limit does not change when signs are flipped, which keeps a sign-flip test
/// exact; and a value on the wrong side counts for little more than one of the others however far
/// all are shifted. Where that distance is 0 nothing is changed.
std::vector<double> winsorised_magnitudes(std::vector<double> x);

/// The limit of winsorised_sample() in units of the median deviation.
inline constexpr double kSampleLimit = 2.5;
/// A sample whose values are limited to kSampleLimit x the median deviation from the median.
struct WinsorisedSample {
  double mean = 0;
  /// Standard error of the mean: that of the limited values times (number / number within the
  /// limits) (Yuen 1974, "The two-sample trimmed t for unequal population variances").
  double error = 0;
  double degrees_of_freedom = 1;  ///< number within the limits - 1, at least 1
};
/// There must be at least two values.
WinsorisedSample winsorised_sample(std::span<const double> x);

}  // namespace scalemark
