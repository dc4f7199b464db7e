// Winsorised values by hand.
#include <gtest/gtest.h>

#include "measure/statistics.hpp"

namespace scalemark::winsorise_test {
namespace {

using Values = std::vector<double>;

TEST(Winsorised, MagnitudesStayWithinTheLimitWhateverTheSigns) {
  EXPECT_EQ(winsorised_magnitudes({1, -2, 3, -100, 2}), (Values{1, -2, 3, -5, 2}));
  EXPECT_EQ(winsorised_magnitudes({-1, 2, 3, 100, -2}), (Values{-1, 2, 3, 5, -2}));
}

TEST(Winsorised, DeviationsStayWithinTheLimitWhateverTheOrder) {
  EXPECT_EQ(winsorised_deviations({11, 12, 13, 99, 10}), (Values{11, 12, 13, 14.5, 10}));
  EXPECT_EQ(winsorised_deviations({99, 10, 11, 13, 12}), (Values{14.5, 10, 11, 13, 12}));
}

TEST(Winsorised, WhereMostAreEqualNothingChanges) {
  EXPECT_EQ(winsorised_magnitudes({0, 0, 0, 7}), (Values{0, 0, 0, 7}));
  EXPECT_EQ(winsorised_deviations({3, 3, 3, -7}), (Values{3, 3, 3, -7}));
  EXPECT_TRUE(winsorised_magnitudes({}).empty());
  EXPECT_TRUE(winsorised_deviations({}).empty());
}

}  // namespace
}  // namespace scalemark::winsorise_test
