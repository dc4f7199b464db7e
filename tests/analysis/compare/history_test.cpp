// Changes of level in a row of sets.
#include "analysis/compare/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"
#include "measure/significance.hpp"

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

std::vector<std::size_t> places(const std::vector<ChangePoint>& changes) {
  std::vector<std::size_t> all;
  for (const ChangePoint& change : changes) all.push_back(change.first);
  return all;
}

TEST(History, FindsEveryStepInOrder) {
  Values values = noise(30, 1);
  for (std::size_t i = 10; i < 30; ++i) values[i] -= i < 22 ? 0.05 : 0.02;
  EXPECT_EQ(places(find_changes(values, 0.01)), (std::vector<std::size_t>{10, 22}));
}

TEST(History, AnOddSetIsNoChange) {
  Values values(20, 1.0);
  values[7] = 0.5;
  EXPECT_TRUE(find_changes(values, 0.01).empty());
  EXPECT_TRUE(find_changes(Values(20, 1.0), 0.01).empty());
  EXPECT_TRUE(find_changes(Values{1, 1, 2}, 0.5).empty());
}

TEST(History, SaysChangeOfNoiseAsSeldomAsItsLevel) {
  int alarms = 0;
  constexpr int kRows = 100;
  for (int row = 0; row < kRows; ++row)
    alarms += find_changes(noise(16, 100 + static_cast<std::uint64_t>(row)), 0.05).empty() ? 0 : 1;
  EXPECT_LE(clopper_pearson(alarms, kRows, 0.99).lo, 0.05) << alarms;
}

TEST(History, TellsTheChangeBetweenLevels) {
  std::vector<ResultSet> sets;
  for (int k = 0; k < 12; ++k)
    sets.push_back(
        test::rates("c" + std::to_string(k), Values(3, k < 6 ? 100 + 0.1 * k : 120 + 0.1 * k)));
  const History history = find_history(sets, match_sets(sets, {}), 0.01);
  ASSERT_EQ(places(history.changes), (std::vector<std::size_t>{6}));
  EXPECT_NEAR(history.percent[0], 100 * (120.85 / 100.25 - 1), 0.01);
  EXPECT_NEAR(history.rates[11], 121.1 / 100, 1e-9);
  const Json record = make_history_record(sets, history, 0.01, {}, {});
  EXPECT_EQ(record["changes"][0]["after"], "c5");
  EXPECT_EQ(record["changes"][0]["at"], "c6");
}

TEST(History, NeedsSetsInARow) {
  const std::vector<ResultSet> three{test::rates("a", {1}), test::rates("b", {1}),
                                     test::rates("c", {1})};
  EXPECT_THROW(find_history(three, match_sets(three, {}), 0.01), ConfigError);
}

}  // namespace
}  // namespace scalemark::history_test
