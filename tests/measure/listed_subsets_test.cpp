// Drawn subsets: how often each place is in, their sizes, and sums by hand.
#include <gtest/gtest.h>

#include "measure/subsets.hpp"

namespace scalemark::listed_subsets_test {
namespace {

using Values = std::vector<double>;

TEST(ListedSubsets, ByCoinsHaveEachPlaceInHalfOfThem) {
  const ListedSubsets drawn = ListedSubsets::by_coins(19, 4000, 3);
  for (std::size_t place = 0; place < 19; ++place) {
    Values one(19);
    one[place] = 1;
    EXPECT_NEAR(4000 - drawn.at_most(one, 0.5), 2000, 4 * 32);  // four standard errors
  }
  EXPECT_EQ(drawn.at_most(Values(19, 1.), 19), 4000);
}

TEST(ListedSubsets, OfOneSizeHaveThatSize) {
  const ListedSubsets drawn = ListedSubsets::of_size(21, 5, 3000, 3);
  const Values ones(21, 1.);
  EXPECT_EQ(drawn.at_most(ones, 4.5), 0);
  EXPECT_EQ(drawn.at_most(ones, 5.5), 3000);
  for (std::size_t place = 0; place < 21; ++place) {
    Values one(21);
    one[place] = 1;
    EXPECT_NEAR(3000 - drawn.at_most(one, 0.5), 3000 * 5 / 21., 4 * 24);
  }
}

TEST(ListedSubsets, OfAllPlacesHaveTheWholeSum) {
  const ListedSubsets drawn = ListedSubsets::of_size(9, 9, 10, 1);
  const Values values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(drawn.at_most(values, 44.9), 0);
  EXPECT_EQ(drawn.at_most(values, 45), 10);
}

}  // namespace
}  // namespace scalemark::listed_subsets_test
