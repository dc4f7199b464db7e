// Divisions into levels, and the test that there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "measure/trend.hpp"

namespace scalemark::level_changes_test {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<double>;

/// The least residual of `changes` changes by trying all of them.
double least_residual(const Values& values, std::size_t begin, std::size_t changes) {
  const auto residual = [&](std::size_t end) {
    const std::span<const double> part(values.data() + begin, end - begin);
    double sum = 0;
    for (const double x : part) sum += (x - mean(part)) * (x - mean(part));
    return sum;
  };
  if (changes == 0) return residual(values.size());
  double least = 1e300;
  for (std::size_t end = begin + kLeastSegment; end + kLeastSegment * changes <= values.size();
       ++end)
    least = std::min(least, residual(end) + least_residual(values, end, changes - 1));
  return least;
}

TEST(BestDivisions, AreThoseOfAllThatThereAre) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const std::size_t n : {4, 5, 9, 13}) {
    Values values(n);
    for (double& value : values) value = 5 + normal(random);
    const std::vector<Division> divisions = best_divisions(values);
    EXPECT_EQ(divisions.size(), std::min(kMostChanges, n / 2 - 1) + 1);
    for (std::size_t m = 0; m < divisions.size(); ++m) {
      EXPECT_EQ(divisions[m].firsts.size(), m);
      EXPECT_NEAR(divisions[m].residual, least_residual(values, 0, m), 1e-9);
    }
  }
}

TEST(BestDivisions, OfFewValues) {
  EXPECT_EQ(best_divisions(Values{}).size(), 1u);
  EXPECT_EQ(best_divisions(Values{1, 2, 3}).size(), 1u);
  EXPECT_THAT(best_divisions(Values{1, 1, 2, 2})[1].firsts, ElementsAre(2));
}

TEST(ChangeTest, TwoAndTwoValuesAreStudentsT) {
  // One division only: (R0 - R1) / R1 = t^2 / 2 with 2 degrees of freedom. Of t = 4.303: 5 %.
  const double half = 4.303 / std::sqrt(2.) / 2;  // values +-1/2 around +-half: s^2 = 1/2
  const Values values{-half - 0.5, -half + 0.5, half - 0.5, half + 0.5};
  ChangeTest test;
  EXPECT_NEAR(test.p(values), 0.05, 0.01);
}

TEST(ChangeTest, DoesNotAskForTheUnit) {
  ChangeTest test(999);
  const Values values{1, 2, 1.5, 1.2, 3, 2.8, 3.1, 3.3};
  Values other = values;
  for (double& value : other) value = 1000 - 7 * value;
  EXPECT_DOUBLE_EQ(test.p(values), test.p(other));
  EXPECT_LT(test.p(values), 0.05);
  EXPECT_GT(test.p(values, 10), 0.5);
}

TEST(ChangeTest, OfValuesThatAreAlike) {
  ChangeTest test(999);
  EXPECT_EQ(test.p(Values(8, 0.1)), 1);
  EXPECT_EQ(test.p(Values{1, 2, 3}), 1);
  EXPECT_DOUBLE_EQ(test.p(Values{1, 1, 1, 1, 2, 2, 2, 2}), 1 / 1000.);
}

TEST(ChangeTest, SmallestStepIsFoundAsOftenAsItSays) {
  ChangeTest test(1999);
  const double step = test.smallest_step(12, 0.05, 0.8);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  int found = 0;
  for (int row = 0; row < 500; ++row) {
    Values values(12);
    for (std::size_t i = 0; i < 12; ++i) values[i] = normal(random) + (i < 6 ? 0 : step);
    found += test.p(values) <= 0.05;
  }
  EXPECT_NEAR(found / 500., 0.8, 0.08);
  EXPECT_GT(test.smallest_step(6, 0.05, 0.8), step);
}

TEST(FindLevels, FewestThatLeaveNothing) {
  ChangeTest test(999);
  const Values values{0, 0.1, 0, 9, 9.1, 9, 0.1, 0, 0.1, 20, 20.1, 20};
  EXPECT_THAT(find_levels(values, 0.01, 0, test), ElementsAre(3, 6, 9));
  EXPECT_TRUE(find_levels(values, 0.01, 1000, test).empty());
}

}  // namespace
}  // namespace scalemark::level_changes_test
