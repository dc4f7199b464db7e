// The promise of docs/coverage.md between launches, with fewer repetitions: what `compare` prints
// covers the truth in at least 93 % for every kind of noise, from 5 launches on.
#include "lab/simulation/launch_coverage.hpp"

#include <gtest/gtest.h>

namespace scalemark::coverage::launch_coverage_test {
namespace {

constexpr int kRepetitions = 600;
const double kTolerance = 3 * std::sqrt(0.93 * 0.07 / kRepetitions);

TEST(LaunchCoverage, IsKeptFromFiveLaunchesOn) {
  for (const std::size_t method : {0, 1})
    for (const LaunchNoise& noise : launch_noises())
      for (const std::size_t n : {5, 10})
        EXPECT_GE(launch_coverage(noise, methods()[method], n, 1, kRepetitions, n),
                  0.93 - kTolerance)
            << methods()[method].name << ", " << noise.name << ", " << n << " launches";
}

TEST(LaunchCoverage, HasNoIntervalOfThreeLaunches) {
  for (const std::size_t method : {0, 1})
    EXPECT_LT(launch_coverage(launch_noises()[0], methods()[method], 3, 1, 20, 1), 0);
}

TEST(LaunchCoverage, TheSimulationCanFail) {
  // The percentile bootstrap of 5 launches is known to be too narrow.
  EXPECT_LT(launch_coverage(launch_noises()[0], methods()[4], 5, 1, kRepetitions, 3), 0.90);
}

TEST(StatedDifference, IsFoundByTheExactTestAsOftenAsPromised) {
  EXPECT_NEAR(power_at_stated_difference(10, true, 1000, 1), 0.8, 0.05);
  EXPECT_NEAR(power_at_stated_difference(10, false, 300, 1), 0.8, 0.08);
}

}  // namespace
}  // namespace scalemark::coverage::launch_coverage_test
