// Adjusted p, minimum detectable differences, shares and the bootstrap against hand and scipy.
#include "measure/significance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/bootstrap.hpp"

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

TEST(ClopperPearson, AreQuantilesOfTheBetaDistribution) {  // scipy.stats.beta
  EXPECT_NEAR(clopper_pearson(5, 20).lo, 0.08657146910143461, 1e-12);
  EXPECT_NEAR(clopper_pearson(5, 20).hi, 0.49104587170795744, 1e-12);
  EXPECT_EQ(clopper_pearson(0, 60).lo, 0);
  EXPECT_NEAR(clopper_pearson(0, 60).hi, 1 - std::pow(0.025, 1. / 60), 1e-12);
  // No alarm in 60 trials: at most 4.9 % at one-sided 95 %.
  EXPECT_NEAR(clopper_pearson(0, 60, 0.90).hi, 1 - std::pow(0.05, 1. / 60), 1e-12);
  EXPECT_EQ(clopper_pearson(20, 20).hi, 1);
  EXPECT_NEAR(clopper_pearson(20, 20).lo, std::pow(0.025, 1. / 20), 1e-12);
}

double mean_of_first(const SampleSet& samples) { return mean(samples[0]); }

/// Control and treatment of Efron and Tibshirani 1993, table 2.1: days that mice survived.
const std::vector<double> kControl{52, 10, 40, 104, 50, 27, 146, 31, 46};
const std::vector<double> kTreatment{94, 197, 16, 38, 99, 141, 23};

TEST(Bootstrap, IsScipysOfOneSample) {  // of 200000 resamples
  const auto percentile =
      bootstrap_interval({kControl}, mean_of_first, BootstrapMethod::percentile, 0.95, 20000);
  ASSERT_TRUE(percentile);
  EXPECT_NEAR(percentile->lo, 33.11, 0.7);
  EXPECT_NEAR(percentile->hi, 84.67, 1.2);
  const auto bca = bootstrap_interval({kControl}, mean_of_first, BootstrapMethod::bca, 0.95, 20000);
  ASSERT_TRUE(bca);
  EXPECT_NEAR(bca->lo, 36.11, 0.7);
  EXPECT_NEAR(bca->hi, 91.78, 1.5);
}

TEST(Bootstrap, IsScipysOfTwoSamples) {
  const auto difference = [](const SampleSet& s) { return mean(s[1]) - mean(s[0]); };
  const auto bca =
      bootstrap_interval({kControl, kTreatment}, difference, BootstrapMethod::bca, 0.95, 20000);
  ASSERT_TRUE(bca);
  EXPECT_NEAR(bca->lo, -19.32, 1.5);
  EXPECT_NEAR(bca->hi, 86.06, 1.5);
}

TEST(Bootstrap, IsRepeatableAndRefusesTooLittle) {
  const auto once = bootstrap_interval({kControl}, mean_of_first);
  const auto again = bootstrap_interval({kControl}, mean_of_first);
  EXPECT_EQ(once->lo, again->lo);
  EXPECT_NE(once->lo, bootstrap_interval({kControl}, mean_of_first, BootstrapMethod::percentile,
                                         0.95, 1999, 2)
                          ->lo);
  EXPECT_FALSE(bootstrap_interval({{1}}, mean_of_first));
  EXPECT_FALSE(bootstrap_interval({}, mean_of_first));
  const auto constant = bootstrap_interval({{2, 2, 2}}, mean_of_first);
  ASSERT_TRUE(constant);
  EXPECT_EQ(constant->lo, 2);
  EXPECT_EQ(constant->hi, 2);
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
