// Estimates the interval of the mean of autocorrelated steps. The long-run variance comes from the
// initial monotone positive sequence (Geyer 1992, "Practical Markov Chain Monte Carlo", section
// 3.3), the interval from Student's t with the equivalent degrees of freedom of the lag window. The
// method was chosen by simulation (docs/coverage.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

constexpr double kLeastEffectiveSamples = 30;
/// Limits the cost for very long runs to n x 4096 multiplications. Correlation beyond this lag is
/// ignored.
constexpr std::size_t kMostLags = 4096;

struct LongRun {
  double effective_samples;   ///< n x variance / long-run variance, at most n
  double standard_error;      ///< standard error of the mean
  double degrees_of_freedom;  ///< degrees of freedom of the standard error
};

/// Returns the biased autocovariance (divided by n) of centred values at one lag.
double autocovariance(std::span<const double> centred, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < centred.size(); ++i) sum += centred[i] * centred[i + lag];
  return sum / static_cast<double>(centred.size());
}

/// Estimates the long-run variance of `x`. In a reversible chain the sums of neighbouring
/// autocovariances are positive and fall, so everything after the first one that is not positive is
/// noise and is left out.
LongRun long_run(std::span<const double> x) {
  const auto n = static_cast<double>(x.size());
  const double center = mean(x);
  const std::vector<double> centred = minus(x, center);

  const double variance = autocovariance(centred, 0);
  // A spread this small is rounding and not measurement, so the series counts as constant.
  if (std::sqrt(variance) <= kRounding * std::abs(center)) return {n, 0, n - 1};

  double sum = -variance, previous = std::numeric_limits<double>::infinity();
  std::size_t lags = 0;
  const std::size_t most = std::min(x.size() / 2, kMostLags);
  while (lags + 1 <= most) {
    const double even = lags == 0 ? variance : autocovariance(centred, lags);
    const double pair = even + autocovariance(centred, lags + 1);
    if (pair <= 0) break;
    previous = std::min(previous, pair);
    sum += 2 * previous;
    lags += 2;
  }
  // A window of lags -(m-1) ... m-1 has 2m - 1 weights. The estimated mean costs that share of the
  // variance, and the window leaves n / (2m - 1) degrees of freedom at frequency zero (Priestley
  // 1981, table 6.2).
  const double weights = 2 * static_cast<double>(std::max<std::size_t>(lags, 1)) - 1;
  const double unbiased_variance = variance * n / (n - 1);
  const double long_run_variance = sum * n / std::max(1.0, n - weights);
  if (long_run_variance <= unbiased_variance) return {n, std::sqrt(unbiased_variance / n), n - 1};
  return {n * unbiased_variance / long_run_variance, std::sqrt(long_run_variance / n),
          std::max(1.0, n / weights - 1)};
}

}  // namespace

double effective_sample_size(std::span<const double> x) {
  return x.size() < 2 ? static_cast<double>(x.size()) : long_run(x).effective_samples;
}

std::optional<Interval> mean_interval(std::span<const double> x, double confidence) {
  if (static_cast<double>(x.size()) < kLeastEffectiveSamples) return std::nullopt;
  const LongRun run = long_run(x);
  // A small tolerance accepts 30 independent values in spite of rounding.
  if (run.effective_samples < kLeastEffectiveSamples * (1 - kRounding)) return std::nullopt;
  const double half = student_quantile(confidence, run.degrees_of_freedom) * run.standard_error;
  return Interval{mean(x) - half, mean(x) + half};
}

}  // namespace scalemark
