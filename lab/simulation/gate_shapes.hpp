// What a gate meets: noise of launches in the shapes that were seen or feared. Logarithms of rates.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace scalemark::gate {

using Random = std::mt19937_64;

inline double gaussian(Random& random) { return std::normal_distribution<double>()(random); }
inline bool happens(Random& random, double share) {
  return std::uniform_real_distribution<double>()(random) < share;
}

/// A launch of the base and one of the new build, without a slowdown between them.
struct LaunchNoise {
  std::string name;
  std::function<double(Random&)> base, fresh;
};

inline LaunchNoise both(const std::string& name, const std::function<double(Random&)>& draw) {
  return {name, draw, draw};
}

/// Normal, so that a pair's difference has this deviation.
inline LaunchNoise normal_launches(const std::string& name, double deviation) {
  return both(name, [=](Random& random) { return deviation / std::sqrt(2.) * gaussian(random); });
}

/// A share of launches at another level, around a spread of 0.5 %.
inline std::function<double(Random&)> two_levels(double share, double log_ratio) {
  return [=](Random& random) {
    return 0.005 * gaussian(random) + (happens(random, share) ? log_ratio : 0);
  };
}

inline std::vector<LaunchNoise> launch_noises() {
  const auto burst = two_levels(0.1, std::log(0.7)), calm = two_levels(0, 0);
  // One launch in five 5 % faster, and all moved so that the mean is that of the calm ones.
  const auto modes = [up = two_levels(0.2, 0.05)](Random& random) { return up(random) - 0.01; };
  return {
      normal_launches("normal, 1 %", 0.01),
      normal_launches("normal, 2.5 %", 0.025),
      both("one in five 5 % slower", two_levels(0.2, -0.05)),
      both("half of them 5 % slower", two_levels(0.5, -0.05)),
      both("one in ten 30 % slower", burst),
      {"the same, of the base alone", burst, calm},
      {"the same, of the new build alone", calm, burst},
      {"two modes of the base alone", modes, calm},
      {"two modes of the new build alone", calm, modes},
      both("log-normal", [](Random& random) { return -0.01 * std::exp(1.2 * gaussian(random)); })};
}

}  // namespace scalemark::gate
