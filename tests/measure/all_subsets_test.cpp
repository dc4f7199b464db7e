// All subsets against listing them, and the split of both kinds of subsets against plain counts.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "measure/subsets.hpp"

namespace scalemark::all_subsets_test {
namespace {

using Values = std::vector<double>;

Values noise(std::size_t n, std::mt19937_64& random) {
  Values x(n);
  for (double& value : x) value = std::normal_distribution<double>()(random);
  return x;
}

/// Every subset of n values, or those of a size, one by one.
ListedSubsets listed(std::size_t n, std::optional<int> size = {}) {
  ListedSubsets all(n);
  for (std::uint32_t places = 0; places < std::uint32_t{1} << n; ++places)
    if (!size || std::popcount(places) == *size) all.add(places);
  return all;
}

TEST(AllSubsets, AreCountedByHand) {
  const AllSubsets all(3), pairs(3, 2);  // of 1 2 4: sums 0 to 7; 3 5 6
  EXPECT_EQ(all.size(), 8);
  EXPECT_EQ(pairs.size(), 3);
  for (int limit = -1; limit <= 8; ++limit)
    EXPECT_EQ(all.at_most({1, 2, 4}, limit), std::clamp(limit + 1, 0, 8)) << limit;
  EXPECT_EQ(pairs.at_most({1, 2, 4}, 2.9), 0);
  EXPECT_EQ(pairs.at_most({1, 2, 4}, 3), 1);
  EXPECT_EQ(pairs.at_most({1, 2, 4}, 5), 2);
  EXPECT_EQ(pairs.at_most({1, 2, 4}, 6), 3);
}

TEST(AllSubsets, AreAsManyAsListingThem) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) {
    const std::size_t n = 1 + random() % 12, size = random() % (n + 1);
    const Values values = noise(n, random);
    const double limit = 2 * noise(1, random).front();
    EXPECT_EQ(AllSubsets(n).at_most(values, limit), listed(n).at_most(values, limit));
    EXPECT_EQ(AllSubsets(n, size).at_most(values, limit),
              listed(n, static_cast<int>(size)).at_most(values, limit));
    EXPECT_EQ(AllSubsets(n, size).size(), listed(n, static_cast<int>(size)).size());
  }
}

/// What lies below the band and what is kept of it make up every count within it.
void expect_counts_within(const Subsets& subsets, const Values& values, double limit, double band) {
  const auto split = subsets.split(values, limit, band);
  ASSERT_TRUE(split);
  EXPECT_LT(split->near->size(), subsets.size());
  EXPECT_GT(split->near->size(), 0);
  for (const double part : {-0.99, -0.5, 0., 0.5, 0.99})
    EXPECT_EQ(split->below + split->near->at_most(values, limit + part * band),
              subsets.at_most(values, limit + part * band));
  EXPECT_EQ(split->near->at_most(values, limit - 1.01 * band), 0);
  EXPECT_EQ(split->near->at_most(values, limit + 1.01 * band), split->near->size());
}

TEST(AllSubsets, AreSplitAtALimit) {
  std::mt19937_64 random(7);
  const Values values = noise(20, random);
  expect_counts_within(AllSubsets(20), values, 0.5, 0.2);
  expect_counts_within(AllSubsets(20, 8), values, -0.5, 0.2);
  expect_counts_within(ListedSubsets::by_coins(20, 5000, 1), values, 0.5, 0.2);
  expect_counts_within(ListedSubsets::of_size(20, 8, 5000, 1), values, -0.5, 0.2);
}

TEST(AllSubsets, TooManyAreNotListed) {
  EXPECT_FALSE(AllSubsets(20).split(Values(20, 0.), 0, 1));  // all million of them
  EXPECT_TRUE(ListedSubsets::by_coins(20, 5000, 1).split(Values(20, 0.), 0, 1));
}

}  // namespace
}  // namespace scalemark::all_subsets_test
