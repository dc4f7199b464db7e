// Changes of level in a row of sets.
#include "analysis/compare/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"

namespace scalemark::history_test {
namespace {

using Values = std::vector<double>;

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

std::vector<ResultSet> rows_of(const Values& levels, double launch_noise) {
  std::vector<ResultSet> sets;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    Values rates;
    for (const double launch : {-1., 0.5, 0., 1., -0.5})
      rates.push_back(levels[k] * (1 + launch_noise * launch));
    sets.push_back(test::rates("c" + std::to_string(k), rates));
  }
  return sets;
}

TEST(History, FindsEveryStepInOrder) {
  Values values = noise(30, 1);
  for (std::size_t i = 10; i < 30; ++i) values[i] -= i < 22 ? 0.05 : 0.02;
  const RowFindings found = changes_of(values);
  EXPECT_EQ(places(found), (std::vector<std::size_t>{10, 22}));
  EXPECT_EQ(found.changes[0].kind, ChangeKind::step);
  EXPECT_NEAR(found.changes[0].difference, -0.05, 0.003);
  EXPECT_LE(found.changes[0].p, 0.005);
  EXPECT_NEAR(found.deviation, 0.01 / std::sqrt(12.), 0.001);
  EXPECT_FALSE(found.drift);
}

TEST(History, LevelsThatAlternateHideNothing) {
  Values values = noise(12, 2);
  for (const std::size_t i : {3, 4, 5, 9, 10, 11}) values[i] -= 0.5;
  const RowFindings found = changes_of(values);
  ASSERT_EQ(places(found), (std::vector<std::size_t>{3, 9}));
  EXPECT_EQ(found.changes[0].kind, ChangeKind::dip);
  EXPECT_EQ(found.changes[0].end, 6u);
  EXPECT_EQ(found.changes[1].kind, ChangeKind::step);
}

TEST(History, AnOddSetIsNoChange) {
  Values values(20, 1.0);
  values[7] = 0.5;
  EXPECT_TRUE(changes_of(values).changes.empty());
  EXPECT_TRUE(changes_of(Values(20, 1.0)).changes.empty());
  EXPECT_TRUE(changes_of(Values{1, 1, 2}, 0.5).changes.empty());
}

TEST(History, ADipIsNamedAndNoTwoSteps) {
  Values values = noise(10, 3);
  for (const std::size_t i : {4, 5}) values[i] -= 0.1;
  const RowFindings dip = changes_of(values);
  ASSERT_EQ(places(dip), (std::vector<std::size_t>{4}));
  EXPECT_EQ(dip.changes[0].kind, ChangeKind::dip);
  EXPECT_EQ(dip.changes[0].end, 6u);
  EXPECT_NEAR(dip.changes[0].difference, -0.1, 0.006);
  for (double& value : values) value = -value;
  EXPECT_EQ(changes_of(values).changes.at(0).kind, ChangeKind::peak);
  // What has not come back yet is a step.
  Values last = noise(10, 4);
  for (const std::size_t i : {8, 9}) last[i] -= 0.1;
  EXPECT_EQ(changes_of(last).changes.at(0).kind, ChangeKind::step);
}

TEST(History, ADriftIsNamedAndNoStairs) {
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

TEST(History, TheLaunchesNoiseIsTheLeast) {
  // Sets that happen to be alike, and launches that are not: no change.
  Values values{0, 0, 0, 0, 0, 0.001, 0.001, 0.001, 0.001, 0.001};
  EXPECT_EQ(places(changes_of(values)), (std::vector<std::size_t>{5}));
  EXPECT_TRUE(changes_of(values, 0.01, 0.001 * 0.001).changes.empty());
  for (double& value : values) value *= 1000;
  EXPECT_EQ(places(changes_of(values, 0.01, 0.001 * 0.001)), (std::vector<std::size_t>{5}));
}

TEST(History, SaysChangeOfNoiseAsSeldomAsItsLevel) {
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

TEST(History, TellsTheChangeBetweenLevels) {
  std::vector<ResultSet> sets;
  for (int k = 0; k < 12; ++k)
    sets.push_back(
        test::rates("c" + std::to_string(k), Values(3, k < 6 ? 100 + 0.1 * k : 120 + 0.1 * k)));
  const History history = find_history(sets, match_sets(sets, {}), 0.01);
  ASSERT_EQ(places(history.found), (std::vector<std::size_t>{6}));
  EXPECT_NEAR(100 * std::expm1(history.found.changes[0].difference), 100 * (120.85 / 100.25 - 1),
              0.01);
  EXPECT_NEAR(history.rates[11], 121.1 / 100, 1e-9);
  const HistoryResult record = make_history(sets, history, 0.01, {}, {});
  EXPECT_EQ(record.changes.at(0).after, "c5");
  EXPECT_EQ(record.changes[0].at, "c6");
  EXPECT_EQ(record.changes[0].kind, ChangeKind::step);
  EXPECT_EQ(record.changes[0].until.why(), "a step lasts");
}

TEST(History, AHalvedRateInTenSetsAndADipOfTwoAreFound) {
  const auto find = [](const Values& levels) {
    const std::vector<ResultSet> sets = rows_of(levels, 0.001);
    const History history = find_history(sets, match_sets(sets, {}), 0.01);
    return make_history(sets, history, 0.01, {}, {});
  };
  const HistoryResult halved =
      find({100, 100.05, 99.96, 100.02, 99.99, 50, 50.03, 49.98, 50.01, 50.02});
  ASSERT_EQ(halved.changes.size(), 1u);
  EXPECT_EQ(halved.changes[0].at, "c5");
  EXPECT_NEAR(halved.changes[0].change_percent, -50, 0.1);
  const HistoryResult dip =
      find({100, 100.05, 99.96, 90.02, 89.99, 100, 100.03, 99.98, 100.01, 100.02});
  ASSERT_EQ(dip.changes.size(), 1u);
  EXPECT_EQ(dip.changes[0].kind, ChangeKind::dip);
  EXPECT_EQ(dip.changes[0].at, "c3");
  EXPECT_EQ(dip.changes[0].until, "c4");
  EXPECT_NEAR(dip.changes[0].change_percent, -10, 0.1);
}

TEST(History, SaysHowManySetsAChangeNeeds) {
  const std::vector<ResultSet> sets =
      rows_of({100, 101, 99, 100.5, 99.5, 101, 99, 100, 100.5, 99.5}, 0.01);
  const History history = find_history(sets, match_sets(sets, {}), 0.01);
  EXPECT_TRUE(history.found.changes.empty());
  // -1, -0.5, 0, 0.5, 1 % of five launches: 0.79 %, of their mean that by the root of 5.
  ASSERT_TRUE(history.launch_noise);
  EXPECT_NEAR(*history.launch_noise, 0.0079 / std::sqrt(5.), 0.0002);
  EXPECT_GT(history.smallest_step, 2 * history.found.deviation);
  EXPECT_GT(history.smallest_step, 2 * *history.launch_noise);
  ASSERT_EQ(history.needed.size(), 4u);
  EXPECT_FALSE(history.needed[0].sets);  // 1 %
  for (std::size_t k = 1; k < 4; ++k) {
    ASSERT_TRUE(history.needed[k].sets) << k;
    EXPECT_LE(*history.needed[k].sets, history.needed[k - 1].sets.value_or(40));
  }
  EXPECT_EQ(history.needed[3].sets, kLeastSets);  // 10 %
  const HistoryResult record = make_history(sets, history, 0.01, {}, {});
  EXPECT_EQ(record.sets_needed->at(0).sets.why(), "more than 40");
  EXPECT_FALSE(record.drift);
}

TEST(History, WithoutTwoLaunchesOfASetTheirNoiseIsUnknown) {
  std::vector<ResultSet> sets;
  for (int k = 0; k < 6; ++k) sets.push_back(test::rates("c" + std::to_string(k), {100. + k % 2}));
  const History history = find_history(sets, match_sets(sets, {}), 0.01);
  EXPECT_FALSE(history.launch_noise);
  EXPECT_FALSE(make_history(sets, history, 0.01, {}, {}).launch_noise_percent);
}

TEST(History, NeedsSetsInARow) {
  std::vector<ResultSet> sets{test::rates("a", {1}), test::rates("b", {1}), test::rates("c", {1})};
  EXPECT_THROW(find_history(sets, match_sets(sets, {}), 0.01), ConfigError);
  sets = rows_of({1, 1, 1, 1, 1}, 0.01);
  EXPECT_THROW(find_history(sets, match_sets(sets, {}), 0.01), ConfigError);
}

}  // namespace
}  // namespace scalemark::history_test
