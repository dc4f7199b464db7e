// Statistics of step times and repeats. Distributions come from Boost.Math.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace scalemark {

/// Sums of doubles that differ by no more than this share of their magnitudes are equal but for
/// rounding.
inline constexpr double kRounding = 1e-12;

struct Interval {
  double lo, hi;
};
/// [lo, hi], for any kind of nlohmann's JSON.
template <typename J>
void to_json(J& json, const Interval& interval) {
  json = {interval.lo, interval.hi};
}

/// Each value less the same constant.
std::vector<double> minus(std::span<const double> x, double constant);

/// NaN for no values, as all quantiles.
double mean(std::span<const double> x);
/// Sample standard deviation (n - 1); 0 for fewer than two values.
double standard_deviation(std::span<const double> x);
/// Quantile q in [0, 1] by linear interpolation between order statistics (Hyndman-Fan type 7).
double quantile(std::span<const double> x, double q);
double median(std::span<const double> x);
/// 1.4826 x median |x - median(x)|: tf_cnn_benchmarks' jitter.
double median_absolute_deviation_scaled(std::span<const double> x);

/// Student's t quantile that leaves (1 - confidence) / 2 on either side.
double student_quantile(double confidence, double degrees_of_freedom);

/// Number of independent samples whose mean is as certain as that of these autocorrelated ones, at
/// most their number: negative correlation never makes an interval narrower than that of
/// independent samples.
double effective_sample_size(std::span<const double> x);

/// The one interval estimator of scalemark: 95 % (or other) confidence interval of the mean of an
/// autocorrelated stationary series. The method is stated in docs/measurements.md, its coverage in
/// docs/coverage.md. nullopt below 30 effective samples; a constant series has an interval of width
/// 0.
std::optional<Interval> mean_interval(std::span<const double> x, double confidence = 0.95);

/// Student's t interval of the mean of independent values (repeats); nullopt for fewer than two.
std::optional<Interval> student_interval(std::span<const double> x, double confidence = 0.95);

// Order statistics of the normal distribution: how late the slowest of many is.

/// E[max of n independent standard normal values], n >= 1 (0 for n = 1, 1 / sqrt(pi) for 2). From
/// the density of the largest of n (David and Nagaraja 2003, "Order Statistics", section 2.1),
/// integrated to a relative error of about 1e-10, n up to 1e12. Throws std::domain_error below 1.
double expected_maximum_of_normals(double n);

// Winsorised values: a launch that a neighbour's burst hit counts as a launch at the edge of the
// others. The limits hang on what the exact tests hold fixed, so the tests stay exact.

/// Limit of a value in units of the median: chosen by simulation, docs/gate.md "Why this
/// statistic".
inline constexpr double kWinsorLimit = 2.5;

/// Each value brought to at most kWinsorLimit x the median magnitude from 0, its sign kept. The
/// limit does not change when signs are flipped. Where that median is 0 nothing is changed.
std::vector<double> winsorised_magnitudes(std::vector<double> x);

/// Each value brought to at most kWinsorLimit x the median deviation from the median. The limits do
/// not change when values are exchanged. Where that deviation is 0 nothing is changed.
std::vector<double> winsorised_deviations(std::vector<double> x);

}  // namespace scalemark
