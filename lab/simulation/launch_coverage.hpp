// Simulated launches for the coverage of intervals between them: by coverage.cpp for
// docs/coverage.md, and with fewer repetitions by lab/tests/launch_coverage_test.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lab/simulation/bootstrap.hpp"
#include "measure/hodges_lehmann.hpp"
#include "measure/significance.hpp"

namespace scalemark::coverage {

using Values = std::vector<double>;
using Random = std::mt19937_64;

/// Log rates of launches: `draw` gives the noise of one, whose expectation is `mean`.
struct LaunchNoise {
  std::string name;
  double mean;
  std::function<double(Random&)> draw;
};

/// Two kinds of launches, 5 % apart; a `share` of them is slow.
inline LaunchNoise two_kinds(std::string name, double share) {
  return {std::move(name), -0.05 * share, [share](Random& random) {
            const bool slow = std::uniform_real_distribution<double>()(random) < share;
            return 0.005 * std::normal_distribution<double>()(random) - (slow ? 0.05 : 0);
          }};
}

inline std::vector<LaunchNoise> launch_noises() {
  const auto gaussian = [](Random& random) { return std::normal_distribution<double>()(random); };
  return {{"normal", 0, [gaussian](Random& random) { return 0.02 * gaussian(random); }},
          {"lognormal", -0.03 * std::exp(0.32),
           [gaussian](Random& random) { return -0.03 * std::exp(0.8 * gaussian(random)); }},
          two_kinds("two modes 50/50", 0.5),
          two_kinds("two modes 80/20", 0.2)};
}

/// A way from the log rates of two sets of launches to an interval of their shift.
struct Method {
  std::string name;
  bool paired;
  std::function<std::optional<Interval>(const Values& a, const Values& b)> interval;
};

inline Values differences(const Values& a, const Values& b) {
  Values d;
  for (std::size_t i = 0; i < a.size(); ++i) d.push_back(b[i] - a[i]);
  return d;
}

inline std::optional<Interval> without_confidence(const std::optional<ExactInterval>& exact) {
  return exact ? std::optional(exact->interval) : std::nullopt;
}

/// Welch's t interval: unequal variances, degrees of freedom by Satterthwaite.
inline std::optional<Interval> welch(const Values& a, const Values& b) {
  const auto n = static_cast<double>(a.size());
  const double va = std::pow(standard_deviation(a), 2) / n;
  const double vb = std::pow(standard_deviation(b), 2) / n;
  const double freedom = (va + vb) * (va + vb) * (n - 1) / (va * va + vb * vb);
  const double half = student_quantile(0.95, freedom) * std::sqrt(va + vb);
  const double shift = mean(b) - mean(a);
  return Interval{shift - half, shift + half};
}

inline std::optional<Interval> bootstrap(const SampleSet& samples, BootstrapMethod method) {
  const auto shift = [](const SampleSet& sets) {
    return sets.size() == 1 ? mean(sets[0]) : mean(sets[1]) - mean(sets[0]);
  };
  return bootstrap_interval(samples, shift, method, 0.95, 499);
}

/// The ones that `compare` prints come first and second.
inline std::vector<Method> methods() {
  using enum BootstrapMethod;
  return {
      {"sign-flip test inverted", true,
       [](const auto& a, const auto& b) {
         return without_confidence(sign_flip_interval(differences(a, b)));
       }},
      {"permutation test inverted", false,
       [](const auto& a, const auto& b) { return without_confidence(permutation_interval(a, b)); }},
      {"Student's t", true,
       [](const auto& a, const auto& b) { return student_interval(differences(a, b)); }},
      {"Hodges-Lehmann, signed rank", true,
       [](const auto& a, const auto& b) {
         return without_confidence(hodges_lehmann_interval(differences(a, b)));
       }},
      {"bootstrap, percentile", true,
       [](const auto& a, const auto& b) { return bootstrap({differences(a, b)}, percentile); }},
      {"bootstrap, BCa", true,
       [](const auto& a, const auto& b) { return bootstrap({differences(a, b)}, bca); }},
      {"Welch's t", false, welch},
      {"Hodges-Lehmann, rank sum", false,
       [](const auto& a, const auto& b) {
         return without_confidence(hodges_lehmann_interval(a, b));
       }},
      {"bootstrap, percentile", false,
       [](const auto& a, const auto& b) {
         return bootstrap({a, b}, percentile);
       }},
      {"bootstrap, BCa", false,
       [](const auto& a, const auto& b) {
         return bootstrap({a, b}, bca);
       }},
  };
}

/// Share of the intervals that hold the true shift; negative where most are refused. The second
/// set's noise is `spread` times as wide as the first one's.
inline double launch_coverage(const LaunchNoise& noise, const Method& method, std::size_t n,
                              double spread, int repetitions, std::uint64_t seed) {
  constexpr double kShift = 0.05;
  Random random(seed);
  int intervals = 0, covered = 0;
  for (int i = 0; i < repetitions; ++i) {
    Values a(n), b(n);
    for (double& value : a) value = noise.draw(random);
    for (double& value : b) value = kShift + spread * noise.draw(random);
    const auto interval = method.interval(a, b);
    if (!interval) continue;
    const double truth = kShift + (spread - 1) * noise.mean, rounding = 1e-9;
    ++intervals;
    covered += interval->lo - rounding <= truth && truth <= interval->hi + rounding;
  }
  return 2 * intervals < repetitions ? -1 : static_cast<double>(covered) / intervals;
}

/// Share of `n` launches of each set (normal noise) whose exact test finds a shift of the size that
/// minimum_detectable_difference() states for 80 % power at 5 %.
inline double power_at_stated_difference(std::size_t n, bool paired, int repetitions,
                                         std::uint64_t seed) {
  const auto count = static_cast<double>(n);
  const double shift = minimum_detectable_difference(
      {std::sqrt((paired ? 1 : 2) / count), (paired ? 1 : 2) * (count - 1)}, 0.05, 0.8);
  Random random(seed);
  int found = 0;
  for (int i = 0; i < repetitions; ++i) {
    Values a(n), b(n);
    for (double& value : a) value = std::normal_distribution<double>()(random);
    for (double& value : b) value = shift + std::normal_distribution<double>()(random);
    const auto test = paired ? sign_flip_test(b, Alternative::two_sided)
                             : permutation_test(a, b, Alternative::two_sided);
    found += test.p <= 0.05;
  }
  return static_cast<double>(found) / repetitions;
}

/// Prints the tables of intervals between launches; false where the promise is broken.
bool print_launches(int repetitions);

}  // namespace scalemark::coverage
