// Divisions into levels, the test that there is one, and what a row of values shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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
  EXPECT_GT(test.p(Values{1, 1, 1, 1, 2, 2, 2, 2}), 0);
  EXPECT_LT(test.p(Values{1, 1, 1, 1, 2, 2, 2, 2}), 1e-9);
  EXPECT_EQ(test.p(Values(100, 0.1)), 1);
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

TEST(ChangeTest, BeyondWhatWasDrawnIsABoundOfAllDivisions) {
  // A step of 9 deviations in 12 values: F of one division is 500, and 11 divisions are possible.
  ChangeTest few(99), many(9999);
  Values values{0, 1, -1, 0.5, -0.5, 0, 9, 10, 8, 9.5, 8.5, 9};
  EXPECT_LT(few.p(values), 1e-5);
  EXPECT_DOUBLE_EQ(few.p(values), many.p(values));
  // What is no rarer than the drawn rows is their share.
  for (std::size_t i = 6; i < 12; ++i) values[i] -= 7.5;
  EXPECT_GE(few.p(values), 0.01);
}

/// Rows of more values than all divisions are searched of.
Values long_row(std::uint64_t seed, std::size_t n = 400) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Values values(n);
  for (double& value : values) value = normal(random);
  return values;
}

TEST(ChangeTest, LongRowsWithoutAChangeKeepTheLevel) {
  ChangeTest test;
  int alarms = 0;
  for (std::uint64_t row = 0; row < 300; ++row) {
    const Values values = long_row(row, 70 + 10 * (row % 10));
    const bool shown = test.p(values) <= 0.05;
    EXPECT_EQ(shown, !find_levels(values, 0.05, 0, test).empty());
    alarms += shown;
  }
  // At 5 % more than 26 of 300 are alarms with a probability of 0.3 %.
  EXPECT_LE(alarms, 26);
}

TEST(ChangeTest, SmallestStepOfALongRowIsFound) {
  ChangeTest test;
  const double step = test.smallest_step(200, 0.05, 0.8);
  EXPECT_LT(step, 1);
  int found = 0;
  for (std::uint64_t row = 0; row < 200; ++row) {
    Values values = long_row(1000 + row, 200);
    for (std::size_t i = 100; i < 200; ++i) values[i] += step;
    found += test.p(values) <= 0.05;
  }
  EXPECT_NEAR(found / 200., 0.8, 0.12);
}

TEST(FindLevels, OfALongRowAreStepsAndDipsAndNoSingleValue) {
  ChangeTest test;
  Values values = long_row(7, 2000);
  for (std::size_t i = 500; i < 2000; ++i) values[i] -= 10;
  for (const std::size_t i : {1200U, 1201U}) values[i] -= 12;
  values[300] -= 200;
  values[1500] += 200;
  EXPECT_THAT(find_levels(values, 0.005, 0, test), ElementsAre(500, 1200, 1202));
  EXPECT_TRUE(find_levels(values, 0.005, 1e6, test).empty());
}

TEST(FindLevels, FewestThatLeaveNothing) {
  ChangeTest test(999);
  const Values values{0, 0.1, 0, 9, 9.1, 9, 0.1, 0, 0.1, 20, 20.1, 20};
  EXPECT_THAT(find_levels(values, 0.01, 0, test), ElementsAre(3, 6, 9));
  EXPECT_TRUE(find_levels(values, 0.01, 1000, test).empty());
}

Values noise(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(0.01 * (static_cast<double>(random() >> 11) / 9007199254740992.0 - 0.5));
  return values;
}

/// One object for all tests: it keeps what it has drawn.
ChangeTest& shared_test() {
  static ChangeTest test;
  return test;
}
RowFindings changes_of(const Values& values, double alpha = 0.01, double least_variance = 0) {
  return find_changes(values, alpha, least_variance, shared_test());
}

std::vector<std::size_t> places(const RowFindings& found) {
  std::vector<std::size_t> all;
  for (const LevelChange& change : found.changes) all.push_back(change.first);
  return all;
}

TEST(FindChanges, FindsEveryStepInOrder) {
  Values values = noise(30, 1);
  for (std::size_t i = 10; i < 30; ++i) values[i] -= i < 22 ? 0.05 : 0.02;
  const RowFindings found = changes_of(values);
  EXPECT_EQ(places(found), (std::vector<std::size_t>{10, 22}));
  EXPECT_FALSE(found.changes[0].goes_back);
  EXPECT_NEAR(found.changes[0].difference, -0.05, 0.003);
  EXPECT_LE(found.changes[0].p, 0.005);
  EXPECT_NEAR(found.deviation, 0.01 / std::sqrt(12.), 0.001);
  EXPECT_FALSE(found.drift);
}

TEST(FindChanges, LevelsThatAlternateHideNothing) {
  Values values = noise(12, 2);
  for (const std::size_t i : {3, 4, 5, 9, 10, 11}) values[i] -= 0.5;
  const RowFindings found = changes_of(values);
  ASSERT_EQ(places(found), (std::vector<std::size_t>{3, 9}));
  EXPECT_TRUE(found.changes[0].goes_back);
  EXPECT_EQ(found.changes[0].end, 6u);
  EXPECT_FALSE(found.changes[1].goes_back);
}

TEST(FindChanges, AnOddSetIsNoChange) {
  Values values(20, 1.0);
  values[7] = 0.5;
  EXPECT_TRUE(changes_of(values).changes.empty());
  EXPECT_TRUE(changes_of(Values(20, 1.0)).changes.empty());
  EXPECT_TRUE(changes_of(Values{1, 1, 2}, 0.5).changes.empty());
}

TEST(FindChanges, ADipIsNamedAndNoTwoSteps) {
  Values values = noise(10, 3);
  for (const std::size_t i : {4, 5}) values[i] -= 0.1;
  const RowFindings dip = changes_of(values);
  ASSERT_EQ(places(dip), (std::vector<std::size_t>{4}));
  EXPECT_TRUE(dip.changes[0].goes_back);
  EXPECT_EQ(dip.changes[0].end, 6u);
  EXPECT_NEAR(dip.changes[0].difference, -0.1, 0.006);
  for (double& value : values) value = -value;
  EXPECT_TRUE(changes_of(values).changes.at(0).goes_back);
  // What has not come back yet is a step.
  Values last = noise(10, 4);
  for (const std::size_t i : {8, 9}) last[i] -= 0.1;
  EXPECT_FALSE(changes_of(last).changes.at(0).goes_back);
}

TEST(FindChanges, ADriftIsNamedAndNoStairs) {
  Values values = noise(20, 5);
  for (std::size_t i = 0; i < 20; ++i) values[i] -= 0.005 * static_cast<double>(i);
  const RowFindings found = changes_of(values);
  EXPECT_TRUE(found.changes.empty());
  ASSERT_TRUE(found.drift);
  EXPECT_NEAR(found.drift->difference, -0.095, 0.01);
  EXPECT_LE(found.drift->p, 0.005);
  EXPECT_LT(found.deviation, 0.004);
  // A step has a trend too, but a line does not fit it.
  Values step = noise(20, 6);
  for (std::size_t i = 10; i < 20; ++i) step[i] -= 0.05;
  EXPECT_FALSE(changes_of(step).drift);
  EXPECT_EQ(places(changes_of(step)), (std::vector<std::size_t>{10}));
}

TEST(FindChanges, TheLaunchesNoiseIsTheLeast) {
  // Sets that happen to be alike, and launches that are not: no change.
  Values values{0, 0, 0, 0, 0, 0.001, 0.001, 0.001, 0.001, 0.001};
  EXPECT_EQ(places(changes_of(values)), (std::vector<std::size_t>{5}));
  EXPECT_TRUE(changes_of(values, 0.01, 0.001 * 0.001).changes.empty());
  for (double& value : values) value *= 1000;
  EXPECT_EQ(places(changes_of(values, 0.01, 0.001 * 0.001)), (std::vector<std::size_t>{5}));
}

TEST(FindChanges, SaysChangeOfNoiseAsSeldomAsItsLevel) {
  int alarms = 0;
  constexpr int kRows = 400;
  for (int row = 0; row < kRows; ++row) {
    const RowFindings found = changes_of(noise(16, 100 + static_cast<std::uint64_t>(row)), 0.05);
    alarms += found.changes.empty() && !found.drift ? 0 : 1;
  }
  // A test at 5 % gives more than 32 alarms in 400 rows with a probability of 0.4 %.
  EXPECT_LE(alarms, 32);
  EXPECT_GE(alarms, 1);
}

}  // namespace
}  // namespace scalemark::level_changes_test
