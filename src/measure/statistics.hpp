// Statistics of step times and repeats. Distributions come from Boost.Math.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace scalemark {

struct Interval {
  double lo, hi;
};

double mean(std::span<const double> x);
/// Sample standard deviation (n - 1); 0 for fewer than two values.
double standard_deviation(std::span<const double> x);
/// Quantile q in [0, 1] by linear interpolation between order statistics (Hyndman-Fan type 7).
double quantile(std::span<const double> x, double q);
double median(std::span<const double> x);
/// 1.4826 x median |x - median(x)|: tf_cnn_benchmarks' jitter.
double median_absolute_deviation_scaled(std::span<const double> x);

/// Number of independent samples worth as much as these autocorrelated ones.
double effective_sample_size(std::span<const double> x);

/// The one interval estimator of scalemark: 95 % (or other) confidence interval of the mean of an autocorrelated
/// stationary series. The method is stated in docs/measurements.md, its coverage in docs/coverage.md.
/// nullopt below 30 effective samples.
std::optional<Interval> mean_interval(std::span<const double> x, double confidence = 0.95);

/// Student's t interval of the mean of independent values (repeats); nullopt for fewer than two.
std::optional<Interval> student_interval(std::span<const double> x, double confidence = 0.95);

}  // namespace scalemark
