// Differences whose percent, p and interval follow by hand from the rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"

namespace scalemark::compare_test {
namespace {
using test::launch;
using test::rates;
using test::result_set;
using test::swept;

MetricComparison compare(const std::vector<ResultSet>& sets,
                         const CompareQuestions& questions = {}) {
  return compare_sets(sets, match_sets(sets, questions.varied), questions);
}

Difference only(const std::vector<ResultSet>& sets, const CompareQuestions& questions = {}) {
  const MetricComparison made = compare(sets, questions);
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
  EXPECT_FALSE(d.paired());
  EXPECT_FALSE(d.in_process());
  EXPECT_NEAR(d.difference_percent, 18.7, 1e-9);
  EXPECT_NEAR(d.base_value, 102, 1e-9);
  EXPECT_NEAR(d.hodges_lehmann_percent, 18.7, 1e-9);
  EXPECT_DOUBLE_EQ(*d.p, 2. / 252);
  EXPECT_DOUBLE_EQ(*d.p_adjusted, 2. / 252);
  EXPECT_EQ(d.verdict, "faster");
  ASSERT_TRUE(d.interval_percent);
  EXPECT_LT(d.interval_percent->lo, 18.7);
  EXPECT_GT(d.interval_percent->hi, 18.7);
  EXPECT_GT(d.interval_percent->lo, 14.5);
  EXPECT_EQ(only({rates("a", kBase), rates("b", scaled(kBase, 0.8))}).verdict, "slower");
}

TEST(Compare, ValuesAreTotalWorkOverTotalTime) {
  ResultSet a = rates("a", {100, 100}), b = rates("b", {100, 100});
  a.launches[0].repeats = {{100, 1}};
  a.launches[1].repeats = {{100, 3}};  // 200 units in 4 s
  EXPECT_DOUBLE_EQ(only({a, b}).base_value, 50);
  // The difference is that of the launches' logarithms: (log 1 + log 3) / 2.
  EXPECT_NEAR(only({a, b}).difference_percent, 100 * (std::sqrt(3.) - 1), 1e-9);
}

TEST(Compare, LongRunsHaveNoMoreSayThanShortOnes) {
  // Every pair is 0.5 % faster, but the slow repeats of b ran ten times as long.
  ResultSet a = swept(rates("a", {100, 200, 100, 200, 100, 200, 100})), b = a;
  b.label = "b";
  for (std::size_t i = 0; i < a.launches.size(); ++i) {
    const double rate = a.launches[i].repeats[0].rate(), seconds = rate < 150 ? 100 : 10;
    b.launches[i].repeats = {{1.005 * rate * seconds, seconds}};
  }
  const Difference d = only({a, b});
  EXPECT_LT(d.value, d.base_value);  // as totals b is slower
  EXPECT_NEAR(d.difference_percent, 0.5, 1e-9);
  EXPECT_NEAR(d.interval_percent->lo, 0.5, 1e-6);
  EXPECT_EQ(d.verdict, "faster");
}

TEST(Compare, TheEstimateLiesInItsInterval) {
  std::vector<double> slow = scaled(kBase, 1);
  slow[2] /= 10;  // one launch ten times as slow
  ResultSet a = rates("a", kBase), b = rates("b", slow);
  b.launches[2].repeats[0] = {kBase[2] * 10, 100};  // as long as its work takes
  for (const auto& sets : {std::vector{a, b}, std::vector{swept(a), swept(b)}}) {
    const Difference d = only(sets);
    ASSERT_TRUE(d.interval_percent);
    EXPECT_LE(d.interval_percent->lo, d.difference_percent);
    EXPECT_GE(d.interval_percent->hi, d.difference_percent);
  }
}

TEST(Compare, SaysWhereTheBareMeanDisagrees) {
  // Five of twenty launches at a tenth of the rate draw the bare mean down, and nothing else.
  std::vector<double> two_levels, level;
  for (int i = 0; i < 20; ++i) {
    level.push_back(100 + 0.1 * i);
    two_levels.push_back(level.back() / (i % 4 == 3 ? 10 : 1) * (1 + 0.001 * (i % 3 - 1)));
  }
  const MetricComparison made = compare({swept(rates("a", level)), swept(rates("b", two_levels))});
  EXPECT_TRUE(made.differences[0].estimates_disagree);
  EXPECT_NEAR(made.differences[0].difference_percent, 0, 0.3);
  EXPECT_NEAR(made.differences[0].hodges_lehmann_percent, 0, 0.2);
  EXPECT_THAT(made.warnings,
              testing::ElementsAre(testing::HasSubstr("but the bare mean says -43.")));
  EXPECT_TRUE(compare({rates("a", kBase), rates("b", scaled(kBase, 0.7))}).warnings.empty());
}

TEST(Compare, LaunchesOfOneSweepArePairs) {
  const std::vector<double> drift{100, 110, 120, 130, 140, 150, 160};
  const Difference d = only({swept(rates("a", drift)), swept(rates("b", scaled(drift, 1.05)))});
  EXPECT_TRUE(d.paired());
  EXPECT_NEAR(*d.p, 2. / 128, 1e-12);
  EXPECT_EQ(d.verdict, "faster");
  EXPECT_NEAR(d.interval_percent->lo, 5, 1e-6);
  EXPECT_NEAR(d.interval_percent->hi, 5, 1e-6);
  EXPECT_NEAR(*d.minimum_detectable_percent, 0, 1e-6);
  // Unpaired, the drift hides the difference.
  EXPECT_EQ(only({rates("a", drift), rates("b", scaled(drift, 1.05))}).verdict,
            record::kNoDifference);
  CompareQuestions declared;
  declared.paired = true;
  EXPECT_TRUE(only({rates("a", drift), rates("b", drift)}, declared).paired());
}

TEST(Compare, PairsBelongToOneRepeatAndOneBuild) {
  ResultSet a = swept(rates("a", {1, 2, 3, 4, 5, 6})), b = swept(rates("b", {2, 4, 6, 8, 10, 12}));
  std::swap(b.launches[0], b.launches[5]);  // the order of the files says nothing
  b.launches.erase(b.launches.begin() + 2);
  const MetricComparison made = compare({a, b});
  EXPECT_TRUE(made.differences[0].paired());
  EXPECT_EQ(made.differences[0].base_repeats, 5U);
  EXPECT_NEAR(made.differences[0].interval_percent->lo, 100, 1e-6);
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::AllOf(
                                 testing::HasSubstr("1 of its repeats is without a partner in b"),
                                 testing::HasSubstr("repeat 3"))));
  for (MeasuredLaunch& one : b.launches) one.revision = "def";
  EXPECT_FALSE(only({a, b}).paired());
}

TEST(Compare, DeclaredPairsAreOfOneRepeat) {
  CompareQuestions declared;
  declared.paired = true;
  ResultSet a = swept(rates("a", {1, 2, 3, 4, 5, 6})), b = swept(rates("b", {2, 4, 6, 8, 10, 12}));
  for (MeasuredLaunch& one : b.launches) one.sweep = "/other";
  std::swap(b.launches[0], b.launches[5]);   // the order of the files says nothing
  b.launches.erase(b.launches.begin() + 2);  // repeat 3
  a.launches.erase(a.launches.begin());      // repeat 1
  const MetricComparison made = compare({a, b}, declared);
  const Difference& d = made.differences.at(0);
  EXPECT_TRUE(d.paired());
  EXPECT_EQ(d.base_repeats, 4U);
  EXPECT_NEAR(d.difference_percent, 100, 1e-9);
  EXPECT_DOUBLE_EQ(*d.p, 2. / 16);
  EXPECT_THAT(
      made.warnings,
      testing::ElementsAre(
          testing::AllOf(testing::HasSubstr("a at 1 rank"), testing::HasSubstr("repeat 3")),
          testing::AllOf(testing::HasSubstr("b at 1 rank"), testing::HasSubstr("repeat 1"))));
}

TEST(Compare, DeclaredPairsWithoutNumbersAreInTheirOrder) {
  CompareQuestions declared;
  declared.paired = true;
  const MetricComparison made = compare({rates("a", {1, 2}), rates("b", {2, 4, 9})}, declared);
  EXPECT_NEAR(made.differences.at(0).difference_percent, 100, 1e-9);
  EXPECT_EQ(made.differences[0].repeats, 2U);
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::HasSubstr("left out: repeat 3")));
  ResultSet a = swept(rates("a", {1, 2})), b = swept(rates("b", {1, 2}));
  for (MeasuredLaunch& one : b.launches) one.repeat += 2;
  EXPECT_THROW(compare({a, b}, declared), ConfigError);
}

TEST(Compare, TooFewLaunchesGiveNoInterval) {
  const Difference three = only({rates("a", {100, 101, 102}), rates("b", {200, 201, 202})});
  EXPECT_DOUBLE_EQ(*three.p, 2. / 20);
  EXPECT_FALSE(three.interval_percent);
  EXPECT_FALSE(three.minimum_detectable_percent);
  EXPECT_EQ(three.verdict, record::kTooFew);
  EXPECT_EQ(three.repeats_needed, 5U);
  const Difference single = only({rates("a", {100}), rates("b", {200})});
  EXPECT_FALSE(single.p);
  EXPECT_NEAR(single.difference_percent, 100, 1e-9);
  // Five pairs have an interval, but no p of 0.05: 2 / 32.
  const Difference five = only({swept(rates("a", kBase)), swept(rates("b", scaled(kBase, 2)))});
  ASSERT_TRUE(five.interval_percent);
  EXPECT_DOUBLE_EQ(*five.interval_confidence, 0.9375);
  EXPECT_EQ(five.verdict, record::kTooFew);
  EXPECT_EQ(five.repeats_needed, 6U);
}

TEST(Compare, EveryComparisonIsAdjustedForAllOthers) {
  ResultSet a = rates("a", kBase), b = rates("b", scaled(kBase, 1.5)), c = rates("c", kBase);
  for (ResultSet* set : {&a, &b, &c})
    for (const double rate : kBase) set->launches.push_back(launch(rate, 2));
  const MetricComparison made = compare({a, b, c});
  ASSERT_EQ(made.differences.size(), 4U);
  EXPECT_NEAR(*made.differences[0].p_adjusted, 4 * 2. / 252, 1e-12);
  EXPECT_EQ(made.differences[0].verdict, "faster");
  EXPECT_EQ(made.differences[1].verdict, record::kNoDifference);
  EXPECT_DOUBLE_EQ(*made.differences[1].p_adjusted, 1);
  EXPECT_EQ(made.differences[2].set_index, 2U);
}

TEST(Compare, TheDetectableDifferenceIsThatOfTheAdjustedLevel) {
  const Difference d = only({rates("a", kBase), rates("b", kBase)});
  std::vector<double> logs;
  for (const double rate : kBase) logs.push_back(std::log(rate));
  const auto kept = limited(logs, median(logs), winsor_limit(logs, logs));
  const double error = standard_deviation(kept) * std::sqrt(2. / 5);
  const double level = 12. / 252;  // the largest multiple of 2 / 252 up to 0.05
  EXPECT_NEAR(*d.minimum_detectable_percent,
              100 * std::expm1(minimum_detectable_difference({error, 8}, level, 0.8)), 1e-9);
  EXPECT_EQ(d.verdict, record::kNoDifference);
}

TEST(Compare, RoundsOfOneLaunchWarn) {
  ResultSet a = rates("a", {100}), b = rates("b", {100});
  for (ResultSet* set : {&a, &b})
    set->launches[0].repeats = {{100, 1}, {101, 1}, {102, 1}, {103, 1}, {104, 1}};
  const MetricComparison made = compare({a, b});
  EXPECT_TRUE(made.differences[0].in_process());
  EXPECT_EQ(made.differences[0].repeats, 5U);
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::HasSubstr("within one launch")));
  // Two curves of each set are two launches.
  a.launches.push_back(a.launches[0]);
  b.launches.push_back(b.launches[0]);
  const MetricComparison launches = compare({a, b});
  EXPECT_FALSE(launches.differences[0].in_process());
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
  EXPECT_NEAR(d.difference_percent, -10, 1e-9);
  EXPECT_EQ(d.verdict, "faster");
  questions.metric = "joules_per_sample";
  EXPECT_THROW(compare({a, b}, questions), ConfigError);
}

TEST(LaunchWarnings, AreWhatABaselineKeepsAndIsToldAgain) {
  ResultSet base = rates("base", kBase);
  EXPECT_THAT(launch_warnings(base), testing::IsEmpty());
  base.launches[1].foreign = ForeignLoad{"n0", 1.3, 2, 10};
  base.launches[2].diverged = true;
  const auto warnings = launch_warnings(base);
  EXPECT_THAT(warnings,
              testing::ElementsAre(
                  testing::HasSubstr("the loss diverged in 1 of 5 launches of base"),
                  testing::HasSubstr("1 of 5 launches of base were measured on a busy machine")));
  ResultSet kept = rates("b.json", kBase);
  kept.warnings = {warnings.back()};
  const std::vector<ResultSet> sets{kept, rates("new", kBase)};
  EXPECT_THAT(set_notes(sets, match_sets(sets, {}), {}),
              testing::Contains("the baseline b.json was saved with a warning: " + warnings[1]));
}

}  // namespace
}  // namespace scalemark::compare_test
