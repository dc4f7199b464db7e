// Changes of level in a row of sets, and the verdict on its newest set.
#include "analysis/compare/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"

namespace scalemark::history_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::vector<double>;

/// With one object for all tests, which keeps what it has drawn.
History find(const std::vector<ResultSet>& sets, const HistoryRules& rules = {}) {
  static ChangeTest test;
  return find_history(sets, match_sets(sets, {}), rules, test);
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

TEST(History, TellsTheChangeBetweenLevels) {
  std::vector<ResultSet> sets;
  for (int k = 0; k < 12; ++k)
    sets.push_back(
        test::rates("c" + std::to_string(k), Values(3, k < 6 ? 100 + 0.1 * k : 120 + 0.1 * k)));
  const History history = find(sets);
  ASSERT_EQ(places(history.found), (std::vector<std::size_t>{6}));
  EXPECT_NEAR(100 * std::expm1(history.found.changes[0].difference), 100 * (120.85 / 100.25 - 1),
              0.01);
  EXPECT_NEAR(history.rates[11], 121.1 / 100, 1e-9);
  const HistoryResult record = make_history(sets, match_sets(sets, {}), history, 0.01, {}, {});
  EXPECT_EQ(record.changes.at(0).after, "c5");
  EXPECT_EQ(record.changes[0].at, "c6");
  EXPECT_EQ(record.changes[0].kind, ChangeKind::step);
  EXPECT_EQ(record.changes[0].until.why(), "a step lasts");
}

TEST(History, AHalvedRateInTenSetsAndADipOfTwoAreFound) {
  const auto record_of = [](const Values& levels) {
    const std::vector<ResultSet> sets = rows_of(levels, 0.001);
    const History history = find(sets);
    return make_history(sets, match_sets(sets, {}), history, 0.01, {}, {});
  };
  const HistoryResult halved =
      record_of({100, 100.05, 99.96, 100.02, 99.99, 50, 50.03, 49.98, 50.01, 50.02});
  ASSERT_EQ(halved.changes.size(), 1u);
  EXPECT_EQ(halved.changes[0].at, "c5");
  EXPECT_NEAR(halved.changes[0].change_percent, -50, 0.1);
  const HistoryResult dip =
      record_of({100, 100.05, 99.96, 90.02, 89.99, 100, 100.03, 99.98, 100.01, 100.02});
  ASSERT_EQ(dip.changes.size(), 1u);
  EXPECT_EQ(dip.changes[0].kind, ChangeKind::dip);
  EXPECT_EQ(dip.changes[0].at, "c3");
  EXPECT_EQ(dip.changes[0].until, "c4");
  EXPECT_NEAR(dip.changes[0].change_percent, -10, 0.1);
}

TEST(History, SaysHowManySetsAChangeNeeds) {
  const std::vector<ResultSet> sets =
      rows_of({100, 101, 99, 100.5, 99.5, 101, 99, 100, 100.5, 99.5}, 0.01);
  const History history = find(sets);
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
  const HistoryResult record = make_history(sets, match_sets(sets, {}), history, 0.01, {}, {});
  EXPECT_EQ(record.sets_needed->at(0).sets.why(), "more than 40");
  EXPECT_FALSE(record.drift);
}

TEST(History, WithoutTwoLaunchesOfASetTheirNoiseIsUnknown) {
  std::vector<ResultSet> sets;
  for (int k = 0; k < 6; ++k) sets.push_back(test::rates("c" + std::to_string(k), {100. + k % 2}));
  const History history = find(sets);
  EXPECT_FALSE(history.launch_noise);
  EXPECT_FALSE(
      make_history(sets, match_sets(sets, {}), history, 0.01, {}, {}).launch_noise_percent);
}

TEST(History, NeedsSetsInARow) {
  std::vector<ResultSet> sets{test::rates("a", {1}), test::rates("b", {1}), test::rates("c", {1})};
  EXPECT_THROW(find(sets), ConfigError);
  sets = rows_of({1, 1, 1, 1, 1}, 0.01);
  EXPECT_THROW(find(sets), ConfigError);
}

/// Five launches of a set at each point, with normal noise.
class Simulated {
 public:
  Simulated(std::uint64_t seed, double deviation) : random_(seed), deviation_(deviation) {}

  /// `levels`: of each set, one of each point: 1 rank, 2 ranks ...
  std::vector<ResultSet> row(const std::vector<Values>& levels) {
    std::vector<ResultSet> sets;
    for (std::size_t k = 0; k < levels.size(); ++k) {
      sets.push_back(test::rates("c" + std::to_string(k), {}));
      for (std::size_t point = 0; point < levels[k].size(); ++point)
        add(sets.back(), point, levels[k]);
    }
    return sets;
  }

 private:
  void add(ResultSet& set, std::size_t point, const Values& levels) {
    for (int i = 0; i < 5; ++i)
      set.launches.push_back(
          test::launch(100 * levels[point] * std::exp(deviation_ * normal_(random_)),
                       static_cast<int>(point) + 1));
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double deviation_;
};

std::string all_warnings(const History& history) {
  std::string text;
  for (const std::string& warning : history.warnings) text += warning + "\n";
  return text;
}

/// Of `sets` sets of one level; `newest`: the last one's, one of each point.
std::vector<Values> levels_until(std::size_t sets, const Values& newest) {
  std::vector<Values> levels(sets - 1, Values(newest.size(), 1));
  levels.push_back(newest);
  return levels;
}

TEST(NewestSet, HalvedIsRegressed) {
  const History history = find(Simulated(1, 0.01).row(levels_until(20, {0.5})));
  EXPECT_EQ(history.newest.verdict, GateVerdict::regressed);
  EXPECT_EQ(history.newest.set, "c19");
  EXPECT_EQ(history.newest.since, "c0");
  EXPECT_EQ(history.newest.sets, 19u);
  EXPECT_NEAR(*history.newest.slowdown_percent, 50, 1);
  EXPECT_LT(*history.newest.p, 1e-6);
  ASSERT_EQ(history.newest.points.size(), 1u);
  EXPECT_TRUE(history.newest.points[0].regressed);
  EXPECT_NEAR(history.newest.points[0].base_value, 100, 1);
  EXPECT_NEAR(history.newest.points[0].value, 50, 1);
}

TEST(NewestSet, TenPercentIsFoundInNearlyEveryRowAndNothingInOnesWithoutAChange) {
  int found = 0, passed = 0, alarms = 0, passed_slow = 0;
  for (std::uint64_t row = 0; row < 25; ++row) {
    const auto verdict_of = [&](double newest) {
      return find(Simulated(row, 0.02).row(levels_until(25, {newest}))).newest.verdict;
    };
    const GateVerdict slow = verdict_of(0.9), same = verdict_of(1);
    found += slow == GateVerdict::regressed;
    passed_slow += slow == GateVerdict::pass;
    alarms += same == GateVerdict::regressed;
    passed += same == GateVerdict::pass;
  }
  EXPECT_GE(found, 24);
  EXPECT_EQ(passed_slow, 0);
  EXPECT_LE(alarms, 2);  // three have a probability of 0.2 %
  EXPECT_GE(passed, 5);
}

TEST(NewestSet, IsHeldAgainstTheLevelThatItContinues) {
  // A step down six sets ago was a change of its own: the newest continues the lower level.
  std::vector<Values> levels(14, {1});
  for (std::size_t i = 8; i < 14; ++i) levels[i] = {0.8};
  const History kept = find(Simulated(2, 0.003).row(levels));
  EXPECT_EQ(kept.newest.verdict, GateVerdict::pass);
  EXPECT_EQ(kept.newest.since, "c8");
  levels.back() = {0.72};
  EXPECT_EQ(find(Simulated(2, 0.003).row(levels)).newest.verdict, GateVerdict::regressed);
  // One set far off the others is no level, and no noise of the others.
  levels.assign(14, {1});
  levels[5] = {0.5};
  levels.back() = {0.95};
  const History odd = find(Simulated(3, 0.003).row(levels));
  EXPECT_EQ(odd.newest.verdict, GateVerdict::regressed);
  EXPECT_NEAR(*odd.newest.slowdown_percent, 5, 0.5);
  EXPECT_THAT(all_warnings(odd),
              HasSubstr("alone far off the sets around it, and not part of any level: c5"));
}

TEST(NewestSet, PointsAreJudgedJointlyWithTheirMean) {
  const History history = find(Simulated(4, 0.01).row(levels_until(20, {0.9, 1 / 0.9})));
  EXPECT_EQ(history.newest.verdict, GateVerdict::regressed);
  EXPECT_NEAR(*history.newest.slowdown_percent, 0, 1);
  ASSERT_EQ(history.newest.points.size(), 2u);
  EXPECT_TRUE(history.newest.points[0].regressed);
  EXPECT_FALSE(history.newest.points[1].regressed);
}

TEST(NewestSet, OfFewSetsOrLaunchesThatFailedIsNoPass) {
  std::vector<ResultSet> sets = Simulated(5, 0.003).row(levels_until(12, {1}));
  EXPECT_EQ(find(sets).newest.verdict, GateVerdict::pass);
  sets[4].failed = 2;
  sets[4].failed_of["abc"] = {2, {"timeout"}, "", ""};
  History history = find(sets);
  EXPECT_EQ(history.newest.verdict, GateVerdict::pass);
  EXPECT_THAT(all_warnings(history), HasSubstr("did not end well: 2 of c4 (timeout)"));
  sets.back().failed = 1;
  sets.back().failed_of["abc"] = {1, {"failed"}, "", ""};
  history = find(sets);
  EXPECT_EQ(history.newest.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(all_warnings(history), HasSubstr("1 of c11 (failed)"));
  HistoryRules rules;
  rules.allowed_to_fail = 1;
  EXPECT_EQ(find(sets, rules).newest.verdict, GateVerdict::pass);
}

TEST(NewestSet, WithoutAPointOfTheOthersIsNoPass) {
  std::vector<Values> levels(12, {1, 1});
  levels.back() = {1};
  const History vanished = find(Simulated(6, 0.003).row(levels));
  EXPECT_EQ(vanished.newest.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(all_warnings(vanished), HasSubstr("ranks 2 vanishes after c10"));
  EXPECT_THAT(all_warnings(vanished), HasSubstr("it lacks ranks 2"));
  levels.assign(12, {1, 1});
  levels[0] = levels[1] = levels[2] = levels[6] = {1};
  const History appeared = find(Simulated(6, 0.003).row(levels));
  EXPECT_EQ(appeared.newest.verdict, GateVerdict::pass);
  EXPECT_THAT(all_warnings(appeared), HasSubstr("ranks 2 appears at c3"));
  EXPECT_THAT(all_warnings(appeared), HasSubstr("ranks 2 is missing in c6"));
}

TEST(History, ChangesOfSinglePointsAreNamed) {
  std::vector<Values> levels(12, {1, 1});
  for (std::size_t i = 6; i < 12; ++i) levels[i] = {0.9, 1 / 0.9};
  const std::vector<ResultSet> sets = Simulated(7, 0.005).row(levels);
  const History history = find(sets);
  EXPECT_TRUE(history.found.changes.empty());
  const HistoryResult record = make_history(sets, match_sets(sets, {}), history, 0.01, {}, {});
  ASSERT_EQ(record.changes.size(), 2u);
  EXPECT_EQ(record.changes[0].point, "ranks 1");
  EXPECT_EQ(record.changes[0].at, "c6");
  EXPECT_NEAR(record.changes[0].change_percent, -10, 1);
  EXPECT_EQ(record.changes[1].point, "ranks 2");
  EXPECT_NEAR(record.changes[1].change_percent, 11, 1);
}

TEST(History, ChangesOfAllPointsAreToldOnce) {
  std::vector<Values> levels(12, {1, 1});
  for (std::size_t i = 6; i < 12; ++i) levels[i] = {0.9, 0.9};
  const History history = find(Simulated(8, 0.005).row(levels));
  EXPECT_EQ(places(history.found), (std::vector<std::size_t>{6}));
  EXPECT_TRUE(history.point_changes.empty());
}

TEST(History, HostsThatChangeAreNamed) {
  std::vector<ResultSet> sets = Simulated(9, 0.005).row(levels_until(10, {1}));
  EXPECT_THAT(all_warnings(find(sets)), Not(HasSubstr("host")));
  for (std::size_t i = 4; i < 10; ++i)
    for (MeasuredLaunch& launch : sets[i].launches) launch.host = "n1";
  EXPECT_THAT(all_warnings(find(sets)), HasSubstr("the host changes: at c4 from n0 to n1"));
}

TEST(History, UnitsThatChangeAreRefused) {
  std::vector<ResultSet> sets = Simulated(10, 0.005).row(levels_until(8, {1}));
  sets.back().launches.back().unit = "tokens/sec";
  EXPECT_THROW(find(sets), ConfigError);
}

TEST(History, OfThousandsOfSetsFindsEveryChange) {
  std::vector<Values> levels(3000, {1});
  for (std::size_t i = 1000; i < 3000; ++i) levels[i] = {0.95};
  for (std::size_t i = 2000; i < 2003; ++i) levels[i] = {0.8};
  levels.back() = {0.85};
  const std::vector<ResultSet> sets = Simulated(11, 0.01).row(levels);
  const HistoryResult record = make_history(sets, match_sets(sets, {}), find(sets), 0.01, {}, {});
  ASSERT_EQ(record.changes.size(), 2u);
  EXPECT_EQ(record.changes[0].at, "c1000");
  EXPECT_EQ(record.changes[1].at, "c2000");
  EXPECT_EQ(record.changes[1].until, "c2002");
  EXPECT_EQ(record.newest->verdict, GateVerdict::regressed);
  EXPECT_EQ(record.newest->since, "c2003");
}

}  // namespace
}  // namespace scalemark::history_test
