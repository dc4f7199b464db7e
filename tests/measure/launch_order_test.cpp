// Orders of launches by hand.
#include "measure/launch_order.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace scalemark::launch_order_test {
namespace {

using Values = std::vector<double>;

/// Starts of `pairs` launches that come every 120 s, from `first` on.
Values every_two_minutes(std::size_t pairs, double first = 0) {
  Values times;
  for (std::size_t k = 0; k < pairs; ++k) times.push_back(first + 120 * static_cast<double>(k));
  return times;
}

TEST(LaunchOrder, OfABaseThatIsAlwaysFirstIsConfounded) {
  const LaunchOrder order =
      order_of_pairs(every_two_minutes(10), every_two_minutes(10, 60), Values(10, -0.015));
  EXPECT_EQ(order.design, LaunchDesign::pairs);
  EXPECT_EQ(order.base_first, 10U);
  EXPECT_EQ(order.fresh_first, 0U);
  EXPECT_TRUE(order.confounded());
  EXPECT_FALSE(order.second_differs);
}

TEST(LaunchOrder, OfPairsThatStartTogetherIsNone) {
  const LaunchOrder order =
      order_of_pairs(every_two_minutes(10), every_two_minutes(10, 2), Values(10, 0.));
  EXPECT_EQ(order.design, LaunchDesign::together);
  EXPECT_FALSE(order.confounded());
}

/// The second launch of each pair is slower by 1.5 %: half of the pairs of either order tell it
/// from the build.
TEST(LaunchOrder, OfBothOrdersTellsWhatTheSecondLaunchLoses) {
  Values base, fresh, ratios;
  for (std::size_t k = 0; k < 10; ++k) {
    const double start = 120 * static_cast<double>(k),
                 noise = 0.0001 * static_cast<double>(k * k % 7);
    const bool base_first = k % 2 == 0;
    base.push_back(start + (base_first ? 0 : 60));
    fresh.push_back(start + (base_first ? 60 : 0));
    ratios.push_back((base_first ? -0.015 : 0.015) + noise);
  }
  const LaunchOrder order = order_of_pairs(base, fresh, ratios);
  EXPECT_EQ(order.base_first, 5U);
  EXPECT_EQ(order.fresh_first, 5U);
  EXPECT_FALSE(order.confounded());
  ASSERT_TRUE(order.second_differs);
  EXPECT_NEAR(*order.second_differs, -0.015, 0.001);
  EXPECT_LT(*order.p, 0.01);
}

/// Of ten pairs the base is first in seven, so that 40 % of what the second launch loses are left.
TEST(LaunchOrder, AnUnevenOrderMakesItsShareOfTheEffect) {
  Values base, fresh, ratios;
  for (std::size_t k = 0; k < 10; ++k) {
    const double start = 120 * static_cast<double>(k);
    const bool base_first = k % 3 != 1;
    base.push_back(start + (base_first ? 0 : 60));
    fresh.push_back(start + (base_first ? 60 : 0));
    ratios.push_back((base_first ? -0.02 : 0.02) + 0.0001 * static_cast<double>(k * k % 7));
  }
  const LaunchOrder order = order_of_pairs(base, fresh, ratios);
  EXPECT_EQ(order.base_first, 7U);
  EXPECT_TRUE(order.hides(-0.008, 0.01, 0.05));
  EXPECT_TRUE(order.hides(0, 0.01, 0.05));
  EXPECT_FALSE(order.hides(-0.02, 0.01, 0.05));
  EXPECT_FALSE(order.hides(0, 0.01, 0.0001)) << "no such level can be reached";
}

TEST(LaunchOrder, TwoOtherPairsOfTenAreEnoughNotToBeConfounded) {
  Values base = every_two_minutes(10), fresh = every_two_minutes(10, 60);
  std::swap(base[3], fresh[3]);
  EXPECT_TRUE(order_of_pairs(base, fresh, {}).confounded());
  std::swap(base[8], fresh[8]);
  EXPECT_FALSE(order_of_pairs(base, fresh, {}).confounded());
  EXPECT_TRUE(order_of_pairs(base, fresh, {}).is_unbalanced());
  for (const std::size_t k : {0U, 5U}) std::swap(base[k], fresh[k]);
  EXPECT_FALSE(order_of_pairs(base, fresh, {}).is_unbalanced());
  EXPECT_TRUE(order_of_pairs(every_two_minutes(5), every_two_minutes(5, 60), {}).confounded());
  EXPECT_FALSE(order_of_pairs(every_two_minutes(4), every_two_minutes(4, 60), {}).confounded());
}

TEST(LaunchOrder, OfOneSetAfterTheOtherIsApart) {
  const Values base = every_two_minutes(8), fresh = every_two_minutes(6, 5000);
  EXPECT_EQ(order_of_sets(base, fresh).design, LaunchDesign::apart);
  EXPECT_EQ(order_of_sets(fresh, base).design, LaunchDesign::apart);
  EXPECT_TRUE(order_of_pairs(every_two_minutes(8), every_two_minutes(8, 5000), {}).confounded());
}

TEST(LaunchOrder, OfSetsThatTakeTurnsIsThatOfPairs) {
  const LaunchOrder pairs = order_of_sets(every_two_minutes(8), every_two_minutes(8, 60));
  EXPECT_EQ(pairs.design, LaunchDesign::pairs);
  EXPECT_TRUE(pairs.confounded());
  EXPECT_EQ(order_of_sets(every_two_minutes(8), every_two_minutes(6, 60)).design,
            LaunchDesign::mixed);
}

TEST(LaunchOrder, OfTimesThatAreNotToldIsUnknown) {
  Values base = every_two_minutes(8);
  base[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(order_of_sets(base, every_two_minutes(8, 60)).design, LaunchDesign::unknown);
  EXPECT_EQ(order_of_pairs(base, every_two_minutes(8, 60), {}).design, LaunchDesign::unknown);
  EXPECT_FALSE(order_of_pairs(Values{1}, Values{2}, {}).confounded());
}

/// One set before the other is a matter of declared pairs only: of two samples it is always told.
TEST(LaunchOrder, OfSetsThatWereMeasuredApartIsNotThatOfPairs) {
  EXPECT_FALSE(order_of_sets(every_two_minutes(8), every_two_minutes(8, 5000)).confounded());
}

/// A rate that falls by 1 % a minute.
Values falling(const Values& times) {
  Values logs;
  for (std::size_t k = 0; k < times.size(); ++k)
    logs.push_back(-0.01 * times[k] / 60 + 0.001 * static_cast<double>(k * k % 5));
  return logs;
}

TEST(SetDrift, IsTheTrendTimesTheTimeBetweenTheSets) {
  const Values base = every_two_minutes(8), fresh = every_two_minutes(8, 600);
  const auto drift = drift_of_sets(base, falling(base), fresh, falling(fresh));
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->makes, -0.1, 0.005);
  EXPECT_LT(drift->p, 0.001);
  EXPECT_TRUE(drift->hides(-0.1, 0.01, 0.05));
  EXPECT_TRUE(drift->hides(0.15, 0.01, 0.05));
  EXPECT_FALSE(drift->hides(-0.3, 0.01, 0.05));
  EXPECT_FALSE(drift->hides(-0.1, 0.3, 0.05));
}

/// The first of four launches, ABBA: both sets lie around the same time.
TEST(SetDrift, OfABalancedOrderMakesNothing) {
  Values base, fresh;
  for (int k = 0; k < 5; ++k) {
    const double start = 240. * k;
    base.insert(base.end(), {start, start + 180});
    fresh.insert(fresh.end(), {start + 60, start + 120});
  }
  const auto drift = drift_of_sets(base, falling(base), fresh, falling(fresh));
  ASSERT_TRUE(drift);
  EXPECT_LT(drift->p, 0.001);
  EXPECT_NEAR(drift->makes, 0, 1e-9);
  EXPECT_FALSE(drift->hides(0, 0.01, 0.05));
}

TEST(SetDrift, OfANoiseWithoutTrendHidesNothing) {
  Values level;
  for (int k = 0; k < 8; ++k) level.push_back(0.001 * (7 * k % 4));
  const auto drift = drift_of_sets(every_two_minutes(8), level, every_two_minutes(8, 960), level);
  ASSERT_TRUE(drift);
  EXPECT_FALSE(drift->hides(0, 0, 0.05));
}

TEST(SetDrift, IsNotKnownAcrossDaysOrWithoutTimes) {
  const Values base = every_two_minutes(8), later = every_two_minutes(8, 86400);
  EXPECT_FALSE(drift_of_sets(base, falling(base), later, falling(base)));
  Values untold = base;
  untold[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(drift_of_sets(base, falling(base), untold, falling(base)));
  EXPECT_FALSE(drift_of_sets(Values{1}, Values{1}, Values{2}, Values{1}));
}

}  // namespace
}  // namespace scalemark::launch_order_test
