// Provides statistics of step times and repeats. Distributions come from Boost.Math.
#pragma once

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
/// ratios and their inverses are treated alike and no bound is negative. nullopt for fewer than
/// two.
std::optional<Interval> log_interval(const std::vector<double>& values);

// Provides order statistics of the normal distribution, which tell how late the slowest of many
// ranks is.

/// Returns E[max of n independent standard normal values] for n >= 1 (0 for n = 1, 1 / sqrt(pi) for
/// 2). It integrates the density of the largest of n (David and Nagaraja 2003, "Order Statistics",
/// section 2.1) to a relative error of about 1e-10, for n up to 1e12. Throws std::domain_error for
/// n below 1.
double expected_maximum_of_normals(double n);

// Winsorises values, so that a launch that other load disturbed counts like one at the edge of the
// others. The limits depend only on what the exact tests hold fixed, so the tests stay exact.

/// The limit of a value in units of the median. It was chosen by simulation (docs/gate.md, "Why
/// this statistic").
inline constexpr double kWinsorLimit = 2.5;

/// Limits each value to kWinsorLimit x the median magnitude and keeps its sign. The limit does not
/// change when signs are flipped. Where that median is 0 nothing is changed.
std::vector<double> winsorised_magnitudes(std::vector<double> x);

/// Limits the distance of each value from the median to kWinsorLimit x the median deviation. The
/// limits do not change when values are exchanged. Where that deviation is 0 nothing is changed.
std::vector<double> winsorised_deviations(std::vector<double> x);

}  // namespace scalemark
