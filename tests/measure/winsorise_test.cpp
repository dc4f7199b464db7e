// Winsorised values by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark::winsorise_test {
namespace {

using Values = std::vector<double>;

TEST(WinsorLimit, IsTwiceTheMedianDistanceFromTheMedianWhateverIsAdded) {
  EXPECT_EQ(winsor_limit(Values{11, 12, 13, 99, 10}), 2);
  EXPECT_EQ(winsor_limit(Values{111, 112, 113, 199, 110}), 2);
  // Distances 2 1 0 1 2 and 20 10 0 10 20: the median of all ten is 2.
  EXPECT_EQ(winsor_limit(Values{1, 2, 3, 4, 5}, Values{10, 20, 30, 40, 50}), 4);
  EXPECT_EQ(winsor_limit(Values{1, 2, 3, 4, 5}, Values{0, 10, 20, 30, 40}), 4);
  EXPECT_TRUE(std::isinf(winsor_limit(Values{3, 3, 3, -7, 3})));
  EXPECT_TRUE(std::isinf(winsor_limit(Values{1, 2, 3, 400})));
  EXPECT_TRUE(std::isinf(winsor_limit(Values{})));
}

TEST(Limited, ValuesStayWithinTheLimitOfTheCentre) {
  EXPECT_EQ(limited({11, 12, 13, 99, -10}, 12, 2), (Values{11, 12, 13, 14, 10}));
  EXPECT_EQ(limited({3, -7}, 0, winsor_limit(Values{3, 3})), (Values{3, -7}));
}

TEST(Winsorised, MagnitudesStayWithinTheLimitWhateverTheSigns) {
  // Magnitudes 1 2 3 100 2: median 2, distances 1 0 1 98 0, whose median is 1.
  EXPECT_EQ(winsorised_magnitudes({1, -2, 3, -100, 2}), (Values{1, -2, 3, -3, 2}));
  EXPECT_EQ(winsorised_magnitudes({-1, 2, 3, 100, -2}), (Values{-1, 2, 3, 3, -2}));
}

/// Where all values are shifted by far more than their noise, an outlier counts like one of them.
TEST(Winsorised, MagnitudesOfAShiftLimitAnOutlierToTheEdgeOfTheOthers) {
  EXPECT_EQ(winsorised_magnitudes({-11, -12, -13, 50, -12}), (Values{-11, -12, -13, 13, -12}));
  EXPECT_EQ(winsorised_magnitudes({-111, -112, -113, 150, -112}),
            (Values{-111, -112, -113, 113, -112}));
}

TEST(Winsorised, WhereMostAreEqualNothingChanges) {
  EXPECT_EQ(winsorised_magnitudes({0, 0, 0, 7}), (Values{0, 0, 0, 7}));
  EXPECT_TRUE(winsorised_magnitudes({}).empty());
}

TEST(WinsorisedSample, ByHand) {
  // Median 12, median distance 1, limit 2.5: 99 counts as 14.5, four of five are within.
  const WinsorisedSample sample = winsorised_sample(Values{11, 12, 13, 99, 10});
  EXPECT_DOUBLE_EQ(sample.mean, 12.1);
  EXPECT_DOUBLE_EQ(sample.degrees_of_freedom, 3);
  EXPECT_NEAR(sample.error, std::sqrt(12.2 / 4 / 5) * 5 / 4, 1e-12);
  EXPECT_EQ(winsorised_sample(Values{3, 3, 3}).error, 0);
}

}  // namespace
}  // namespace scalemark::winsorise_test
