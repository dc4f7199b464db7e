// Two one-sided tests against assignments counted by hand, and the number of launches against
// simulated t-tests.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "measure/significance.hpp"

namespace scalemark::equivalence_test {
namespace {

using Values = std::vector<double>;

TEST(Equivalence, OfPairsWellWithinTheMargin) {
  const Values d{0.001, -0.001, 0.002, -0.002, 0.0};
  // Less -0.02 all are positive: 1 of 32 assignments, on either side.
  EXPECT_DOUBLE_EQ(sign_flip_equivalence_p(d, {-0.02, 0.02}), 1. / 32);
  EXPECT_GT(sign_flip_equivalence_p(d, {-0.0001, 0.0001}), 0.3);
  // The side that is nearer decides: all but one of d - 0.002 are below 0.
  EXPECT_GT(sign_flip_equivalence_p(d, {-0.02, 0.0}), 0.5);
}

TEST(Equivalence, OfTwoSamples) {
  const Values a{1, 1.01, 0.99}, b{1.002, 1.012, 0.992};
  EXPECT_DOUBLE_EQ(permutation_equivalence_p(a, b, {-0.1, 0.1}), 1. / 20);
  EXPECT_GT(permutation_equivalence_p(a, b, {-0.1, 0.001}), 0.3);
}

/// Share of `runs` in which two one-sided t-tests of n pairs without a difference both refuse.
double simulated_power(std::size_t n, double deviation, double margin, int runs) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, deviation);
  int shown = 0;
  for (int run = 0; run < runs; ++run) {
    Values d(n);
    for (double& value : d) value = noise(random);
    const StandardError error = paired_error(d);
    const double t = student_quantile(0.9, error.degrees_of_freedom);  // one-sided 5 %
    shown += std::abs(mean(d)) + t * error.value < margin;
  }
  return static_cast<double>(shown) / runs;
}

TEST(Equivalence, SoManyLaunchesShowItWithThatPower) {
  const auto n = repeats_for_equivalence(0.02, true, {-0.02, 0.02}, 0.05, 0.8);
  ASSERT_TRUE(n);
  EXPECT_GE(simulated_power(*n, 0.02, 0.02, 20'000), 0.78);
  EXPECT_LT(simulated_power(*n - 2, 0.02, 0.02, 20'000), 0.8);
  EXPECT_GT(*repeats_for_equivalence(0.02, false, {-0.02, 0.02}, 0.05, 0.8), 3 * *n / 2);
  EXPECT_EQ(repeats_for_equivalence(0, true, {-0.02, 0.02}, 0.05, 0.8), 2U);
  EXPECT_FALSE(repeats_for_equivalence(1, true, {-1e-6, 1e-6}, 0.05, 0.8));
  EXPECT_FALSE(repeats_for_equivalence(1, true, {0.01, 0.02}, 0.05, 0.8));
}

}  // namespace
}  // namespace scalemark::equivalence_test
