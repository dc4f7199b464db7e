// Synthetic series of step times with a known mean, on which the interval estimator's coverage is
// simulated: by coverage.cpp for docs/coverage.md, and with fewer repetitions by
// lab/tests/coverage_test.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark::coverage {

using Random = std::mt19937_64;

/// A kind of series; `generate(n, random)` gives n values whose expectation is `mean`.
struct Series {
  std::string name;
  double mean;
  std::function<std::vector<double>(std::size_t, Random&)> generate;
};

inline double gaussian(Random& random) { return std::normal_distribution<double>()(random); }

/// Independent values, drawn by `draw`.
inline Series independent(std::string name, double mean, std::function<double(Random&)> draw) {
  return {std::move(name), mean, [draw](std::size_t n, Random& random) {
            std::vector<double> x(n);
            for (double& value : x) value = draw(random);
            return x;
          }};
}

inline Series normal() {
  return independent("normal", 1, [](Random& random) { return 1 + 0.05 * gaussian(random); });
}

/// exp(sigma z): mean exp(sigma^2 / 2).
inline Series lognormal(double sigma) {
  return independent("lognormal, sigma " + std::to_string(sigma).substr(0, 4),
                     std::exp(sigma * sigma / 2),
                     [sigma](Random& random) { return std::exp(sigma * gaussian(random)); });
}

/// A share of the steps is slower by a constant: two modes, or rare spikes.
inline Series two_modes(std::string name, double share, double slower) {
  return independent(std::move(name), 1 + share * slower, [share, slower](Random& random) {
    const bool slow = std::uniform_real_distribution<double>()(random) < share;
    return 1 + 0.02 * gaussian(random) + (slow ? slower : 0);
  });
}

/// z[i] = phi z[i-1] + sqrt(1 - phi^2) e[i], stationary from the start, unit variance; value =
/// transform(z).
inline Series autoregressive(std::string name, double phi, double mean,
                             std::function<double(double)> transform) {
  return {std::move(name), mean, [phi, transform](std::size_t n, Random& random) {
            std::vector<double> x(n);
            double z = gaussian(random);
            for (double& value : x) {
              value = transform(z);
              z = phi * z + std::sqrt(1 - phi * phi) * gaussian(random);
            }
            return x;
          }};
}

inline Series ar1(double phi) {
  return autoregressive("AR(1), phi " + std::to_string(phi).substr(0, phi < 0 ? 4 : 3), phi, 1,
                        [](double z) { return 1 + 0.05 * z; });
}

inline Series lognormal_ar1(double sigma, double phi) {
  return autoregressive("lognormal AR(1), sigma " + std::to_string(sigma).substr(0, 4) + ", phi " +
                            std::to_string(phi).substr(0, 3),
                        phi, std::exp(sigma * sigma / 2),
                        [sigma](double z) { return std::exp(sigma * z); });
}

/// White noise and a slow AR(1), phi 0.9, of a third of the total variance: a machine that drifts.
inline Series drifting() {
  return {"white noise + slow AR(1), phi 0.9", 1, [](std::size_t n, Random& random) {
            std::vector<double> x(n);
            double z = gaussian(random);
            for (double& value : x) {
              value = 1 + 0.05 * (std::sqrt(2.0 / 3) * gaussian(random) + std::sqrt(1.0 / 3) * z);
              z = 0.9 * z + std::sqrt(1 - 0.81) * gaussian(random);
            }
            return x;
          }};
}

/// Every tenth step does more work, from a random first one.
inline Series periodic() {
  return {"every tenth step 30 % slower", 1.03, [](std::size_t n, Random& random) {
            std::vector<double> x(n);
            const auto offset = std::uniform_int_distribution<std::size_t>(0, 9)(random);
            for (std::size_t i = 0; i < n; ++i)
              x[i] = 1 + 0.02 * gaussian(random) + ((i + offset) % 10 == 0 ? 0.3 : 0.0);
            return x;
          }};
}

/// Series and length at which 95 % intervals must cover 93-97 %.
struct Promise {
  Series series;
  std::size_t steps;
};
inline std::vector<Promise> promises() {
  std::vector<Promise> list;
  for (const std::size_t steps : {400, 1000})
    for (const Series& series : {normal(), lognormal(0.25), lognormal(0.5), ar1(0.1), ar1(0.2),
                                 ar1(0.3), ar1(0.4), ar1(0.5)})
      list.push_back({series, steps});
  return list;
}

/// Of `repetitions` simulated series: how many got an interval, and how many intervals held the
/// mean.
struct Coverage {
  int repetitions = 0, intervals = 0, covered = 0;
  double half_width_sum = 0;  ///< relative to the mean

  double covered_fraction() const {
    return intervals ? static_cast<double>(covered) / intervals : 0;
  }
  double refused_fraction() const { return 1 - static_cast<double>(intervals) / repetitions; }
  void add(const std::optional<Interval>& interval, double mean) {
    ++repetitions;
    if (!interval) return;
    ++intervals;
    if (interval->lo <= mean && mean <= interval->hi) ++covered;
    half_width_sum += (interval->hi - interval->lo) / 2 / mean;
  }
};

inline Coverage simulate(const Series& series, std::size_t steps, int repetitions,
                         std::uint64_t seed) {
  Random random(seed);
  Coverage coverage;
  for (int i = 0; i < repetitions; ++i)
    coverage.add(mean_interval(series.generate(steps, random)), series.mean);
  return coverage;
}

}  // namespace scalemark::coverage
