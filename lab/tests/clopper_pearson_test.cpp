// Intervals of shares against scipy and closed forms.
#include "lab/simulation/clopper_pearson.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace scalemark::clopper_pearson_test {
namespace {

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

}  // namespace
}  // namespace scalemark::clopper_pearson_test
