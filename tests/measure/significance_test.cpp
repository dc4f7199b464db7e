// Adjusted p, minimum detectable differences and repeats against hand and scipy.
#include "measure/significance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace scalemark::significance_test {
namespace {

TEST(Holm, MultipliesByWhatIsLeft) {
  // Sorted 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 raised to what came before.
  const auto adjusted = holm_adjusted({0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected{0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(adjusted[i], expected[i]) << i;
}

TEST(Holm, IsAtMostOneAndLeavesASingleTestAlone) {
  EXPECT_EQ(holm_adjusted({0.6, 0.7}), (std::vector<double>{1, 1}));
  EXPECT_EQ(holm_adjusted({0.2}), (std::vector<double>{0.2}));
  EXPECT_TRUE(holm_adjusted({}).empty());
}

TEST(MinimumDetectableDifference, IsThatOfTheNonCentralT) {  // scipy.stats.nct
  EXPECT_NEAR(minimum_detectable_difference({1, 9}, 0.05, 0.8), 3.149632886450555, 1e-8);
  EXPECT_NEAR(minimum_detectable_difference({1, 6}, 0.05, 0.9), 3.912620764248036, 1e-8);
  EXPECT_NEAR(minimum_detectable_difference({2, 38}, 0.01, 0.8), 2 * 3.5747588220392195, 1e-7);
}

TEST(RepeatsToFind, FindTheDifference) {
  // A deviation of 0.02 and a difference of 0.02: Cohen's d = 1, one-sided 5 %, power 0.8: 8 pairs
  // by his tables (1988, table 2.4.1 of one sample).
  EXPECT_EQ(repeats_to_find(0.02, {0.02 / std::sqrt(5.), 4}, 5, 0.1, 0.8), 8U);
  const std::size_t n = repeats_to_find(0.01, {0.02 / std::sqrt(5.), 4}, 5, 0.1, 0.8);
  const double root = std::sqrt(static_cast<double>(n)), freedom = static_cast<double>(n - 1);
  EXPECT_LE(minimum_detectable_difference({0.02 / root, freedom}, 0.1, 0.8), 0.0101);
  EXPECT_GE(minimum_detectable_difference({0.02 / (root - 0.3), freedom}, 0.1, 0.8), 0.0098);
  EXPECT_LE(repeats_to_find(0.01, {0, 4}, 5, 0.1, 0.8), 2U);
}

}  // namespace
}  // namespace scalemark::significance_test
