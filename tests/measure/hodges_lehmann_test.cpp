// Hodges-Lehmann estimates and their rank intervals against small cases and scipy.
#include "measure/hodges_lehmann.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace scalemark::hodges_lehmann_test {
namespace {

using Values = std::vector<double>;

TEST(HodgesLehmann, IsTheMedianOfWalshAverages) {
  // Averages of 1 2 10: 1 1.5 5.5 2 6 10.
  EXPECT_DOUBLE_EQ(hodges_lehmann(Values{1, 2, 10}), 3.75);
  EXPECT_DOUBLE_EQ(hodges_lehmann(Values{5}), 5);
  EXPECT_TRUE(std::isnan(hodges_lehmann(Values{})));
}

TEST(HodgesLehmann, OfTwoSamplesIsTheMedianDifference) {
  // Differences of 1 2 and 4 5 100: 3 4 99 2 3 98.
  EXPECT_DOUBLE_EQ(hodges_lehmann(Values{1, 2}, Values{4, 5, 100}), 3.5);
  EXPECT_DOUBLE_EQ(hodges_lehmann(Values{4, 5, 100}, Values{1, 2}), -3.5);
}

TEST(HodgesLehmann, AndIntervalOfDarwinsMaize) {
  const Values darwin{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
  EXPECT_DOUBLE_EQ(hodges_lehmann(darwin), 25);
  const auto exact = hodges_lehmann_interval(darwin);  // scipy: order statistics 26 and 95 of 120
  ASSERT_TRUE(exact);
  EXPECT_DOUBLE_EQ(exact->interval.lo, 4);
  EXPECT_DOUBLE_EQ(exact->interval.hi, 41.5);
  EXPECT_NEAR(exact->confidence, 0.95208740234375, 1e-12);
}

TEST(HodgesLehmann, AndIntervalOfUnequalSamples) {
  // Hollander and Wolfe 1973, example 4.1: estimate 0.305 for term - early, 96 % interval from
  // -0.15 to 0.76.
  const Values term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Values early{1.15, 0.88, 0.90, 0.74, 1.21};
  EXPECT_NEAR(hodges_lehmann(early, term), 0.305, 1e-12);
  const auto exact = hodges_lehmann_interval(early, term);
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->interval.lo, -0.15, 1e-12);
  EXPECT_NEAR(exact->interval.hi, 0.76, 1e-12);
  EXPECT_NEAR(exact->confidence, 0.9600399600399601, 1e-12);
  const auto reversed = hodges_lehmann_interval(term, early);
  EXPECT_NEAR(reversed->interval.lo, -0.76, 1e-12);
  EXPECT_NEAR(reversed->confidence, exact->confidence, 1e-12);
}

TEST(HodgesLehmannInterval, HasTheConfidenceThatFewValuesAllow) {
  const auto five = hodges_lehmann_interval(Values{3, 1, 4, 1.5, 9});
  ASSERT_TRUE(five);
  EXPECT_EQ(five->interval.lo, 1);
  EXPECT_EQ(five->interval.hi, 9);
  EXPECT_DOUBLE_EQ(five->confidence, 1 - 2. / 32);
  EXPECT_FALSE(hodges_lehmann_interval(Values{1, 2, 3, 4}));
  EXPECT_FALSE(hodges_lehmann_interval(Values{1, 2, 3}, Values{4, 5, 6}));
  const auto four = hodges_lehmann_interval(Values{1, 2, 3, 4}, Values{11, 12, 13, 14});
  ASSERT_TRUE(four);
  EXPECT_DOUBLE_EQ(four->interval.lo, 7);
  EXPECT_DOUBLE_EQ(four->interval.hi, 13);
  EXPECT_NEAR(four->confidence, 1 - 2. / 70, 1e-12);
}

/// Permeability of membranes, against scipy, and values whose differences tie.
TEST(RankSumTest, IsThatOfScipyAndCountsTiesHalf) {
  const Values term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Values early{1.15, 0.88, 0.90, 0.74, 1.21};
  EXPECT_NEAR(RankSumTest(term, early).greater_p(0), 0.8967698967698967, 1e-12);
  EXPECT_NEAR(RankSumTest(early, term).greater_p(0), 0.1272061272061272, 1e-12);
  const RankSumTest tied(Values{1, 2, 3, 4, 5}, Values{3, 4, 5, 6, 7});
  EXPECT_DOUBLE_EQ(tied.greater_p(0), 19. / 252);
}

/// The limit is where p passes the level, exact or normal, and a level that no data reach has none.
TEST(RankSumTest, HasTheLimitAtItsLevel) {
  for (const std::size_t n : {6U, 24U}) {
    Values a, b;
    for (std::size_t i = 0; i < n; ++i) {
      a.push_back(std::sin(static_cast<double>(7 * i)));
      b.push_back(std::cos(static_cast<double>(11 * i)) + 0.3);
    }
    const RankSumTest test(a, b);
    const double limit = test.least_shift(0.025);
    EXPECT_LE(test.greater_p(limit - 1e-6), 0.025) << n;
    EXPECT_GT(test.greater_p(limit + 1e-6), 0.025) << n;
  }
  EXPECT_EQ(RankSumTest(Values{1, 2}, Values{3, 4}).least_shift(0.1),
            -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace scalemark::hodges_lehmann_test
