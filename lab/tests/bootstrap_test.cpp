// The bootstrap against scipy.
#include "lab/simulation/bootstrap.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace scalemark::bootstrap_test {
namespace {

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

}  // namespace
}  // namespace scalemark::bootstrap_test
