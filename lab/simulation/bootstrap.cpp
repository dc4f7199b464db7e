// Computes bootstrap intervals, percentile and BCa.
#include "lab/simulation/bootstrap.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <random>

namespace scalemark {
namespace {

using Statistic = std::function<double(const SampleSet&)>;

SampleSet resampled(const SampleSet& samples, std::mt19937_64& random) {
  SampleSet drawn = samples;
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (double& value : drawn[s]) value = samples[s][random() % samples[s].size()];
  return drawn;
}

/// a = sum l^3 / n^3 / (6 (sum l^2 / n^2)^1.5) over samples of n values and their jackknife
/// influences l = (n - 1) (mean of the statistic without one value - statistic without this one).
double acceleration(const SampleSet& samples, const Statistic& statistic) {
  double cubes = 0, squares = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto n = static_cast<double>(samples[s].size());
    std::vector<double> without;
    for (std::size_t i = 0; i < samples[s].size(); ++i) {
      SampleSet rest = samples;
      rest[s].erase(rest[s].begin() + static_cast<std::ptrdiff_t>(i));
      without.push_back(statistic(rest));
    }
    const double centre = mean(without);
    for (const double value : without) {
      const double influence = (n - 1) * (centre - value) / n;
      squares += influence * influence;
      cubes += influence * influence * influence;
    }
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

/// The level of the resampled distribution that stands for level `q` of the normal one.
double adjusted(double q, double bias, double a) {
  const boost::math::normal normal;
  const double z = bias + boost::math::quantile(normal, q);
  return boost::math::cdf(normal, bias + z / (1 - a * z));
}

}  // namespace

std::optional<Interval> bootstrap_interval(const SampleSet& samples, const Statistic& statistic,
                                           BootstrapMethod method, double confidence, int resamples,
                                           std::uint64_t seed) {
  if (samples.empty()) return std::nullopt;
  for (const auto& sample : samples)
    if (sample.size() < 2) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int i = 0; i < resamples; ++i) values.push_back(statistic(resampled(samples, random)));
  double low = (1 - confidence) / 2, high = 1 - low;
  const auto [smallest, largest] = std::ranges::minmax(values);
  if (method == BootstrapMethod::bca && smallest < largest) {
    const double observed = statistic(samples);
    // Half of those that equal the observed one, so that few distinct values give no bias.
    double below = 0;
    for (const double value : values) below += value < observed ? 1 : value == observed ? 0.5 : 0;
    const double share = below / resamples;
    if (share <= 0 || share >= 1) return std::nullopt;
    const double bias = boost::math::quantile(boost::math::normal(), share);
    const double a = acceleration(samples, statistic);
    low = adjusted(low, bias, a);
    high = adjusted(high, bias, a);
  }
  return Interval{quantile(values, low), quantile(values, high)};
}

}  // namespace scalemark
