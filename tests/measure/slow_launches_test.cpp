// Slow launches by hand, Fisher's test against published tables.
#include "measure/slow_launches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace scalemark::slow_launches_test {
namespace {

using Values = std::vector<double>;
using Indices = std::vector<std::size_t>;

TEST(FisherTest, ByHandAndByBinomialCoefficients) {
  // The lady tasting tea (Fisher 1935): all four right is 1 of 70; three or more 17 of 70.
  EXPECT_NEAR(fisher_p(0, 4, 4, 4), 1. / 70, 1e-12);
  EXPECT_NEAR(fisher_p(1, 4, 3, 4), 17. / 70, 1e-12);
  EXPECT_NEAR(fisher_p(0, 20, 5, 20), 15504. / 658008, 1e-12);
  EXPECT_NEAR(fisher_p(0, 50, 13, 50), 0.00004, 0.00002);
  EXPECT_EQ(fisher_p(3, 20, 0, 20), 1);
  EXPECT_EQ(fisher_p(0, 20, 0, 20), 1);
  EXPECT_NEAR(fisher_p(5, 5, 5, 5), 1, 1e-12);
}

/// Twenty launches of each with the same small noise; of the new ones every third is half as fast.
Values launches(std::size_t slow_every) {
  Values x;
  for (std::size_t i = 0; i < 20; ++i)
    x.push_back(0.01 * std::sin(static_cast<double>(7 * i)) -
                (slow_every > 0 && i % slow_every == 0 ? std::log(2.) : 0));
  return x;
}

TEST(SlowLaunches, OfTheNewSetAreNamedAndTested) {
  const SlowLaunches slow = slow_launches(launches(0), launches(3), 0.02);
  EXPECT_TRUE(slow.base.empty());
  EXPECT_EQ(slow.fresh, (Indices{0, 3, 6, 9, 12, 15, 18}));
  EXPECT_NEAR(slow.p, fisher_p(0, 20, 7, 20), 1e-12);
  EXPECT_LT(slow.p, 0.005);
  EXPECT_GT(slow.cut, 0.02);
  EXPECT_LT(slow.cut, 0.2);
}

TEST(SlowLaunches, OfTheBaseAreNoFinding) {
  const SlowLaunches slow = slow_launches(launches(3), launches(0), 0.02);
  EXPECT_EQ(slow.base.size(), 7U);
  EXPECT_TRUE(slow.fresh.empty());
  EXPECT_EQ(slow.p, 1);
}

TEST(SlowLaunches, OfBothSetsAlikeAreNone) {
  EXPECT_GT(slow_launches(launches(3), launches(3), 0.02).p, 0.5);
}

/// A distance that does not matter is never slow, however quiet the others are.
TEST(SlowLaunches, AreFartherThanTheLeastDistance) {
  Values fresh(20, 0.);
  fresh[3] = -0.019;
  fresh[4] = -0.021;
  EXPECT_EQ(slow_launches(Values(20, 0.), fresh, 0.02).fresh, Indices{4});
}

TEST(SlowPairs, CountBothSidesOfTheCut) {
  Values ratios = launches(3);
  SlowLaunches slow = slow_pairs(ratios, 0.02);
  EXPECT_EQ(slow.fresh, (Indices{0, 3, 6, 9, 12, 15, 18}));
  EXPECT_NEAR(slow.p, 1. / 128, 1e-12);
  ratios[1] = ratios[2] = 0.7;  // two launches of the base
  slow = slow_pairs(ratios, 0.02);
  EXPECT_EQ(slow.base, (Indices{1, 2}));
  EXPECT_NEAR(slow.p, 46. / 512, 1e-12);  // 7 or more heads of 9
  EXPECT_EQ(slow_pairs(launches(0), 0.02).p, 1);
}

}  // namespace
}  // namespace scalemark::slow_launches_test
