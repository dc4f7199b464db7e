// Metrics beside throughput: efficiency, units, and what has no ratio.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"

namespace scalemark::metrics_test {
namespace {
using test::launch;
using test::rates;
using test::result_set;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

MetricComparison compare(const std::vector<ResultSet>& sets, const std::string& metric,
                         const std::vector<std::string>& varied = {}) {
  CompareQuestions questions;
  questions.metric = metric;
  questions.varied = varied;
  return compare_sets(sets, match_sets(sets, varied), questions);
}

std::string refusal(const std::vector<ResultSet>& sets, const std::string& metric,
                    const std::vector<std::string>& varied = {}) {
  try {
    compare(sets, metric, varied);
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

/// Six repeats of a sweep on 1 and 4 ranks; the machine is `speed` times as fast while it is
/// measured, drifts within it, and 4 ranks have `efficiency` of the rate of one.
ResultSet sweep(const std::string& label, double speed, double efficiency) {
  ResultSet set = result_set(label, {});
  for (std::int64_t repeat = 1; repeat <= 6; ++repeat)
    for (const int ranks : {1, 4}) {
      const double drift = speed * (1 + 0.03 * static_cast<double>(repeat));
      const double noise = 1 + 0.001 * static_cast<double>(repeat * ranks % 5);
      set.launches.push_back(
          launch(100 * drift * noise * (ranks == 1 ? 1 : 4 * efficiency), ranks));
      set.launches.back().sweep = "/" + label;
      set.launches.back().repeat = repeat;
    }
  return set;
}

TEST(Metrics, InEfficiencyADriftBetweenSetsCancels) {
  const std::vector<ResultSet> drifted{sweep("a", 1, 0.8), sweep("b", 1.2, 0.8)};
  EXPECT_EQ(compare(drifted, "throughput").differences.at(1).verdict, "faster");
  const MetricComparison made = compare(drifted, "efficiency");
  ASSERT_EQ(made.differences.size(), 1U);  // the smallest point has none
  EXPECT_NEAR(made.differences[0].difference_percent, 0, 1e-9);
  EXPECT_EQ(made.differences[0].verdict, record::kNoDifference);
  EXPECT_NEAR(made.differences[0].base_value, 0.8, 0.01);
  // A real difference is found in spite of the drift within each set, which pairs of a pass share.
  const MetricComparison worse = compare({sweep("a", 1, 0.8), sweep("b", 1.2, 0.79)}, "efficiency");
  EXPECT_NEAR(worse.differences[0].difference_percent, 100 * (0.79 / 0.8 - 1), 1e-9);
  EXPECT_EQ(worse.differences[0].verdict, "lower");
}

TEST(Metrics, EfficiencyWithoutASweepKeepsTheNoiseOfTheSmallestPoint) {
  ResultSet a = rates("a", {100, 102, 98, 101, 99}), b = rates("b", {100, 102, 98, 101, 99});
  for (ResultSet* set : {&a, &b})
    for (int i = 0; i < 5; ++i) set->launches.push_back(launch(150, 2));
  const Difference d = compare({a, b}, "efficiency").differences.at(0);
  EXPECT_NEAR(d.difference_percent, 0, 1e-9);
  EXPECT_GT(d.interval_percent->hi - d.interval_percent->lo, 1);
}

TEST(Metrics, EfficiencyOfCurvesIsThatOfTheirRounds) {
  ResultSet a = result_set("a", {launch(100), launch(160, 2)});
  a.launches[0].repeats = {{100, 1}, {110, 1}, {120, 1}};
  a.launches[1].repeats = {{160, 1}, {176, 1}, {192, 1}};
  ResultSet b = a;
  b.label = "b";
  const Difference d = compare({a, b}, "efficiency").differences.at(0);
  EXPECT_TRUE(d.in_process());
  EXPECT_EQ(d.base_repeats, 3U);
  EXPECT_NEAR(d.base_value, 0.8, 1e-12);
}

TEST(Metrics, EfficiencyIsComparedByItselfWhereThereAreSeveralRankCounts) {
  const std::vector<ResultSet> one{rates("a", {1, 2}), rates("b", {1, 2})};
  EXPECT_THAT(default_metrics(match_sets(one, {})), ElementsAre("throughput"));
  EXPECT_THAT(refusal(one, "efficiency"), HasSubstr("two rank counts"));
  const std::vector<ResultSet> two{sweep("a", 1, 1), sweep("b", 1, 1)};
  EXPECT_THAT(default_metrics(match_sets(two, {})), ElementsAre("throughput", "efficiency"));
}

TEST(Metrics, ThroughputPerRankDividesByTheRanks) {
  const std::vector<ResultSet> sets{rates("a", {100, 100}), rates("b", {180, 180}, 2)};
  const Difference d =
      compare(sets, "throughput_per_rank", {"ranks", "transport"}).differences.at(0);
  EXPECT_NEAR(d.difference_percent, -10, 1e-9);
  EXPECT_NEAR(d.value, 90, 1e-9);
  EXPECT_EQ(d.unit, "images/sec/rank");
  EXPECT_NEAR(
      compare(sets, "throughput", {"ranks", "transport"}).differences.at(0).difference_percent, 80,
      1e-9);
}

TEST(Metrics, UnitsThatDifferAreRefused) {
  ResultSet a = rates("a", {1, 2}), b = rates("b", {1, 2});
  for (MeasuredLaunch& one : b.launches) {
    one.keys["model"] = "transformer_big";
    one.unit = "tokens/sec";
    one.path = "b/0.json";
  }
  a.launches[0].path = "a/0.json";
  EXPECT_THAT(refusal({a, b}, "throughput", {"model"}),
              AllOf(HasSubstr("images/sec"), HasSubstr("tokens/sec"), HasSubstr("a/0.json"),
                    HasSubstr("b/0.json")));
  for (ResultSet* set : {&a, &b})
    for (MeasuredLaunch& one : set->launches) one.metrics["exposed_seconds"] = 0.1;
  EXPECT_EQ(compare({a, b}, "exposed_seconds", {"model"}).differences.size(), 1U);
}

TEST(Metrics, LessIsLowerAndWhatIsNotAboveZeroHasNoRatio) {
  std::vector<ResultSet> sets{rates("a", {1, 1, 1, 1, 1, 1}), rates("b", {1, 1, 1, 1, 1, 1})};
  for (std::size_t set = 0; set < 2; ++set)
    for (std::size_t i = 0; i < 6; ++i)
      for (MeasuredLaunch* one : {&sets[set].launches[i]})
        one->metrics["exposed_seconds"] =
            (set == 0 ? 0.2 : 0.1) * (1 + 0.01 * static_cast<double>(i));
  for (ResultSet& set : sets) {
    set.launches.push_back(launch(1, 2));
    set.launches.back().metrics["exposed_seconds"] = 0.3;
  }
  sets[1].launches.back().metrics["exposed_seconds"] = -0.001;
  const MetricComparison made = compare(sets, "exposed_seconds");
  ASSERT_EQ(made.differences.size(), 1U);
  EXPECT_NEAR(made.differences[0].difference_percent, -50, 1e-9);
  EXPECT_EQ(made.differences[0].verdict, "lower");
  EXPECT_EQ(made.differences[0].unit, "seconds/step");
  EXPECT_THAT(made.notes, ElementsAre(AllOf(HasSubstr("b at 2 ranks"), HasSubstr("-0.001"))));
}

TEST(Metrics, LaunchesWithoutItAreCounted) {
  std::vector<ResultSet> sets{rates("a", {1, 2, 3}), rates("b", {1, 2, 3})};
  for (ResultSet& set : sets)
    for (MeasuredLaunch& one : set.launches) one.metrics["nic_bytes"] = 10;
  sets[1].launches[1].metrics.clear();
  const MetricComparison made = compare(sets, "nic_bytes");
  EXPECT_EQ(made.differences.at(0).repeats, 2U);
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("1 of 3 launches have no nic_bytes")));
}

}  // namespace
}  // namespace scalemark::metrics_test
