// Differences whose percent, p and interval follow by hand from the rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"
#include "measure/significance.hpp"

namespace scalemark::compare_test {
namespace {
using test::launch;
using test::rates;
using test::result_set;
using test::swept;
using Word = ComparisonVerdict;

Comparison compare(const std::vector<ResultSet>& sets, const CompareQuestions& questions = {}) {
  return compare_sets(sets, match_sets(sets, questions.varied), questions);
}

Difference only(const std::vector<ResultSet>& sets, const CompareQuestions& questions = {}) {
  const Comparison made = compare(sets, questions);
  EXPECT_EQ(made.differences.size(), 1U);
  return made.differences.at(0);
}

const std::vector<double> kBase{100, 101, 102, 103, 104};

std::vector<double> scaled(std::vector<double> x, double factor) {
  for (double& value : x) value *= factor;
  return x;
}

TEST(Compare, OfTwoSamplesThatDoNotOverlap) {
  const Difference d = only({rates("a", kBase), rates("b", scaled(kBase, 1.187))});
  EXPECT_FALSE(d.paired);
  EXPECT_FALSE(d.in_process);
  EXPECT_NEAR(d.percent, 18.7, 1e-9);
  EXPECT_NEAR(d.base_value, 102, 1e-9);
  EXPECT_NEAR(d.hodges_lehmann_percent, 18.7, 1e-9);
  EXPECT_DOUBLE_EQ(*d.p, 2. / 252);
  EXPECT_DOUBLE_EQ(*d.p_adjusted, 2. / 252);
  EXPECT_EQ(d.verdict, Word::faster);
  ASSERT_TRUE(d.interval);
  EXPECT_LT(d.interval->interval.lo, 18.7);
  EXPECT_GT(d.interval->interval.hi, 18.7);
  EXPECT_GT(d.interval->interval.lo, 14.5);
  EXPECT_EQ(only({rates("a", kBase), rates("b", scaled(kBase, 0.8))}).verdict, Word::slower);
}

TEST(Compare, RatesAreTotalWorkOverTotalTime) {
  ResultSet a = rates("a", {100, 100}), b = rates("b", {100, 100});
  a.launches[0].repeats = {{100, 1}};
  a.launches[1].repeats = {{100, 3}};  // 200 units in 4 s
  EXPECT_DOUBLE_EQ(only({a, b}).base_value, 50);
  EXPECT_DOUBLE_EQ(only({a, b}).percent, 100);
}

TEST(Compare, LaunchesOfOneSweepArePairs) {
  const std::vector<double> drift{100, 110, 120, 130, 140, 150, 160};
  const Difference d = only({swept(rates("a", drift)), swept(rates("b", scaled(drift, 1.05)))});
  EXPECT_TRUE(d.paired);
  EXPECT_NEAR(*d.p, 2. / 128, 1e-12);
  EXPECT_EQ(d.verdict, Word::faster);
  EXPECT_NEAR(d.interval->interval.lo, 5, 1e-6);
  EXPECT_NEAR(d.interval->interval.hi, 5, 1e-6);
  EXPECT_NEAR(*d.detectable_percent, 0, 1e-6);
  // Unpaired, the drift hides the difference.
  EXPECT_EQ(only({rates("a", drift), rates("b", scaled(drift, 1.05))}).verdict,
            Word::no_difference_shown);
  CompareQuestions declared;
  declared.paired = true;
  EXPECT_TRUE(only({rates("a", drift), rates("b", drift)}, declared).paired);
}

TEST(Compare, PairsBelongToOneRepeatAndOneBuild) {
  ResultSet a = swept(rates("a", {1, 2, 3, 4, 5, 6})), b = swept(rates("b", {2, 4, 6, 8, 10, 12}));
  std::swap(b.launches[0], b.launches[5]);  // the order of the files says nothing
  b.launches.erase(b.launches.begin() + 2);
  const Comparison made = compare({a, b});
  EXPECT_TRUE(made.differences[0].paired);
  EXPECT_EQ(made.differences[0].base_repeats, 5U);
  EXPECT_NEAR(made.differences[0].interval->interval.lo, 100, 1e-6);
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::HasSubstr("1 repeats have no partner")));
  for (MeasuredLaunch& one : b.launches) one.revision = "def";
  EXPECT_FALSE(only({a, b}).paired);
}

TEST(Compare, DeclaredPairsNeedAsManyOfEach) {
  CompareQuestions declared;
  declared.paired = true;
  EXPECT_THROW(compare({rates("a", {1, 2}), rates("b", {1, 2, 3})}, declared), ConfigError);
}

TEST(Compare, TooFewLaunchesGiveNoInterval) {
  const Difference three = only({rates("a", {100, 101, 102}), rates("b", {200, 201, 202})});
  EXPECT_DOUBLE_EQ(*three.p, 2. / 20);
  EXPECT_FALSE(three.interval);
  EXPECT_FALSE(three.detectable_percent);
  EXPECT_EQ(three.verdict, Word::too_few);
  EXPECT_EQ(three.repeats_needed, 5U);
  const Difference single = only({rates("a", {100}), rates("b", {200})});
  EXPECT_FALSE(single.p);
  EXPECT_NEAR(single.percent, 100, 1e-9);
  // Five pairs have an interval, but no p of 0.05: 2 / 32.
  const Difference five = only({swept(rates("a", kBase)), swept(rates("b", scaled(kBase, 2)))});
  ASSERT_TRUE(five.interval);
  EXPECT_DOUBLE_EQ(five.interval->confidence, 0.9375);
  EXPECT_EQ(five.verdict, Word::too_few);
  EXPECT_EQ(five.repeats_needed, 6U);
}

TEST(Compare, EveryComparisonIsAdjustedForAllOthers) {
  ResultSet a = rates("a", kBase), b = rates("b", scaled(kBase, 1.5)), c = rates("c", kBase);
  for (ResultSet* set : {&a, &b, &c})
    for (const double rate : kBase) set->launches.push_back(launch(rate, 2));
  const Comparison made = compare({a, b, c});
  ASSERT_EQ(made.differences.size(), 4U);
  EXPECT_NEAR(*made.differences[0].p_adjusted, 4 * 2. / 252, 1e-12);
  EXPECT_EQ(made.differences[0].verdict, Word::faster);
  EXPECT_EQ(made.differences[1].verdict, Word::no_difference_shown);
  EXPECT_DOUBLE_EQ(*made.differences[1].p_adjusted, 1);
  EXPECT_EQ(made.differences[2].set, 2U);
}

TEST(Compare, TheDetectableDifferenceIsThatOfTheAdjustedLevel) {
  const Difference d = only({rates("a", kBase), rates("b", kBase)});
  std::vector<double> logs;
  for (const double rate : kBase) logs.push_back(std::log(rate));
  const double error = standard_deviation(logs) * std::sqrt(2. / 5);
  const double level = 12. / 252;  // the largest multiple of 2 / 252 up to 0.05
  EXPECT_NEAR(*d.detectable_percent,
              100 * std::expm1(minimum_detectable_difference({error, 8}, level, 0.8)), 1e-9);
  EXPECT_EQ(d.verdict, Word::no_difference_shown);
}

TEST(Compare, RoundsOfOneLaunchWarn) {
  ResultSet a = rates("a", {100}), b = rates("b", {100});
  for (ResultSet* set : {&a, &b})
    set->launches[0].repeats = {{100, 1}, {101, 1}, {102, 1}, {103, 1}, {104, 1}};
  const Comparison made = compare({a, b});
  EXPECT_TRUE(made.differences[0].in_process);
  EXPECT_EQ(made.differences[0].other_repeats, 5U);
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::HasSubstr("within one launch")));
  // Two curves of each set are two launches.
  a.launches.push_back(a.launches[0]);
  b.launches.push_back(b.launches[0]);
  const Comparison launches = compare({a, b});
  EXPECT_FALSE(launches.differences[0].in_process);
  EXPECT_EQ(launches.differences[0].base_repeats, 2U);
  EXPECT_TRUE(launches.warnings.empty());
}

TEST(Compare, OfLatencyLowerIsFaster) {
  ResultSet a = rates("a", kBase), b = rates("b", kBase);
  for (std::size_t i = 0; i < kBase.size(); ++i) {
    a.launches[i].metrics["latency_p50"] = 0.01 + 1e-5 * static_cast<double>(i);
    b.launches[i].metrics["latency_p50"] = 0.9 * a.launches[i].metrics["latency_p50"];
  }
  CompareQuestions questions;
  questions.metric = "latency_p50";
  const Difference d = only({a, b}, questions);
  EXPECT_NEAR(d.percent, -10, 1e-9);
  EXPECT_EQ(d.verdict, Word::faster);
  questions.metric = "joules_per_sample";
  EXPECT_THROW(compare({a, b}, questions), ConfigError);
}

}  // namespace
}  // namespace scalemark::compare_test
