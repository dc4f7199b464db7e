// Curves with hand-computed numbers.
#include "analysis/scaling/scaling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "error.hpp"

namespace scalemark::scaling_test {
namespace {

using testing::HasSubstr;

/// `steps` steps of `step_seconds` with `units_per_step` units each.
PointRepeat repeat(double units_per_step, double step_seconds, double steps, double wait = 0) {
  PointRepeat r;
  r.run = "11111111-1111-4111-8111-111111111111";
  r.path = std::string("curve.runs/run.json");
  r.units = units_per_step * steps;
  r.seconds = step_seconds * steps;
  r.step_seconds_mean = step_seconds;
  r.wait_seconds_mean = wait;
  return r;
}

PointRepeat baseline(double units_per_step, double step_seconds, double steps) {
  PointRepeat r = repeat(units_per_step, step_seconds, steps);
  r.baseline = true;
  return r;
}

/// One rank: 10 units a step at 1 s and at 2 s (rates 10 and 5). Two ranks: 20 units at 1.25 s and
/// 2 s (rates 16 and 10).
std::vector<PointRuns> two_rounds() {
  return {{2,
           {repeat(20, 1.25, 8, 0.1), repeat(20, 2, 8, 0.4)},
           {baseline(20, 1, 8), baseline(20, 1.75, 8)}},
          {1, {repeat(10, 1, 8), repeat(10, 2, 8)}, {}}};
}

using Points = std::vector<record::ScalingPoint>;

TEST(ScalingCurve, WhatACollectiveAddsIsTheStepLessTheOneWithoutIt) {
  auto rounds = two_rounds();
  rounds[0].without[LeaveOut::allgather] = {repeat(20, 1.125, 8), repeat(20, 1.85, 8)};
  rounds[0].without[LeaveOut::reduce_scatter] = {repeat(20, 1.2, 8), repeat(20, 1.9, 8)};
  const Points curve = scaling_points(rounds);
  EXPECT_FALSE(curve[0].exposed_collectives) << "one rank";
  ASSERT_EQ(curve[1].exposed_collectives->size(), 2u);
  const auto& scatter = (*curve[1].exposed_collectives)[0];
  const auto& gather = (*curve[1].exposed_collectives)[1];
  EXPECT_EQ(scatter.collective, "reduce_scatter");
  EXPECT_NEAR(*scatter.exposed_seconds, 0.075, 1e-12);
  EXPECT_EQ(gather.collective, "allgather");
  EXPECT_NEAR(*gather.exposed_seconds, (0.125 + 0.15) / 2, 1e-12);
  // Two differences, 0.125 and 0.15: Student's t of one degree of freedom is 12.7062.
  EXPECT_NEAR(gather.exposed_ci95->hi - *gather.exposed_seconds, 12.7062 * 0.0125, 1e-5);
  EXPECT_EQ(gather.repeats.size(), 2u);
  EXPECT_EQ(gather.repeats[1].repeat, 2);
  EXPECT_EQ(curve[1].repeats.size(), 4u) << "those are whole runs and baselines";
  EXPECT_NEAR(*curve[1].exposed_seconds, 0.25, 1e-12);
}

TEST(ScalingCurve, IsSortedByRanksAndBasedOnTheSmallest) {
  const Points curve = scaling_points(two_rounds());
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].ranks, 1);
  EXPECT_EQ(curve[1].ranks, 2);
}

TEST(ScalingCurve, ThroughputIsAllUnitsOverAllSeconds) {
  const Points curve = scaling_points(two_rounds());
  EXPECT_DOUBLE_EQ(*curve[0].throughput, 160.0 / 24);  // not the mean of 10 and 5
  EXPECT_DOUBLE_EQ(*curve[1].throughput, 320.0 / 26);
}

/// Points of these efficiencies, a unit a rank and second, each with `repeats` equal repeats.
Points curve_of(const std::vector<std::pair<int, double>>& efficiencies, int repeats = 1) {
  std::vector<PointRuns> points;
  for (const auto& [ranks, efficiency] : efficiencies)
    points.push_back(
        {ranks, std::vector<PointRepeat>(repeats, repeat(ranks * efficiency, 1, 8)), {}});
  return scaling_points(points);
}

TEST(ScalingCurve, APointBelowBothNeighboursIsADip) {
  const Points curve = curve_of({{1, 1}, {2, 0.9}, {3, 0.6}, {4, 0.85}, {8, 0.8}});
  EXPECT_FALSE(curve[0].trend);
  EXPECT_FALSE(curve[4].trend);
  EXPECT_FALSE(curve[1].trend->dip);
  EXPECT_TRUE(curve[2].trend->dip);
  EXPECT_NEAR(curve[2].trend->expected_efficiency, 0.9 - 0.05 * std::log2(1.5), 1e-12);
  EXPECT_FALSE(curve[3].trend->dip);
  EXPECT_TRUE(curve_of({{2, 1}, {3, 0.6}, {4, 1}}, 3)[1].trend->dip);  // with an interval
}

TEST(ScalingCurve, AStepDownOrASmallDeviationIsNone) {
  for (const record::ScalingPoint& point : curve_of({{1, 1}, {2, 1}, {4, 0.7}, {8, 0.7}}))
    EXPECT_FALSE(point.trend && point.trend->dip) << point.ranks;  // hosts of two ranks
  EXPECT_FALSE(curve_of({{2, 0.9}, {3, 0.87}, {4, 0.9}})[1].trend->dip);
}

TEST(ScalingCurve, ADipWithinItsIntervalIsNone) {
  const std::vector<PointRuns> points{{1, {repeat(10, 1, 8), repeat(10, 1, 8)}, {}},
                                      {3, {repeat(12, 1, 8), repeat(30, 1, 8)}, {}},
                                      {4, {repeat(40, 1, 8), repeat(40, 1, 8)}, {}}};
  const auto trend = scaling_points(points)[1].trend;
  EXPECT_DOUBLE_EQ(trend->expected_efficiency, 1);
  EXPECT_FALSE(trend->dip);
}

TEST(ScalingCurve, SpeedupIsTheRatioAndEfficiencyItsShareOfTheRanks) {
  const Points curve = scaling_points(two_rounds());
  EXPECT_DOUBLE_EQ(*curve[0].speedup, 1);
  EXPECT_DOUBLE_EQ(*curve[0].efficiency, 1);
  EXPECT_DOUBLE_EQ(*curve[1].speedup, (320.0 / 26) / (160.0 / 24));
  EXPECT_DOUBLE_EQ(*curve[1].efficiency, *curve[1].speedup / 2);
}

TEST(ScalingCurve, IntervalsAreStudentsOnLogarithms) {
  const Points curve = scaling_points(two_rounds());
  const double t = 12.70620474;  // t(0.975, 1)
  // log rates of one rank: log 10, log 5; half their difference is their standard error.
  const double rate_half = t * std::log(10.0 / 5) / 2;
  const double rate_center = std::sqrt(10.0 * 5);
  ASSERT_TRUE(curve[0].ci95);
  EXPECT_NEAR(curve[0].ci95->lo, rate_center * std::exp(-rate_half), 1e-6);
  EXPECT_NEAR(curve[0].ci95->hi / (rate_center * std::exp(rate_half)), 1, 1e-6);
  // Ratios by round: 16 / 10 = 1.6 and 10 / 5 = 2: the round's own slowness is taken out.
  const double ratio_half = t * std::log(2 / 1.6) / 2;
  const double ratio_center = std::sqrt(1.6 * 2);
  ASSERT_TRUE(curve[1].speedup_ci95);
  EXPECT_NEAR(curve[1].speedup_ci95->lo, ratio_center * std::exp(-ratio_half), 1e-6);
  EXPECT_NEAR(curve[1].speedup_ci95->hi, ratio_center * std::exp(ratio_half), 1e-6);
  ASSERT_TRUE(curve[1].efficiency_ci95);
  EXPECT_DOUBLE_EQ(curve[1].efficiency_ci95->lo, curve[1].speedup_ci95->lo / 2);
  EXPECT_DOUBLE_EQ(curve[1].efficiency_ci95->hi, curve[1].speedup_ci95->hi / 2);
}

TEST(ScalingCurve, APerfectlyPairedSlowdownLeavesNoUncertaintyOfTheSpeedup) {
  const Points curve =
      scaling_points({{1, {repeat(10, 1, 8), repeat(10, 2, 8), repeat(10, 4, 8)}, {}},
                      {4, {repeat(40, 2, 8), repeat(40, 4, 8), repeat(40, 8, 8)}, {}}});
  EXPECT_NEAR(*curve[1].speedup, 2, 1e-12);
  EXPECT_NEAR(curve[1].speedup_ci95->lo, 2, 1e-12);
  EXPECT_NEAR(curve[1].speedup_ci95->hi, 2, 1e-12);
  EXPECT_NEAR(*curve[1].efficiency, 0.5, 1e-12);
  EXPECT_LT(curve[1].ci95->lo, 0.7 * *curve[1].throughput);
}

TEST(ScalingCurve, TheBaseHasNoIntervalOfItsSpeedup) {
  const Points curve = scaling_points(two_rounds());
  EXPECT_FALSE(curve[0].speedup_ci95);
  EXPECT_FALSE(curve[0].efficiency_ci95);
}

TEST(ScalingCurve, OneRepeatHasNoIntervals) {
  const Points curve =
      scaling_points({{1, {repeat(10, 1, 8)}, {}}, {2, {repeat(20, 1.25, 8)}, {}}});
  EXPECT_DOUBLE_EQ(*curve[1].speedup, 1.6);
  EXPECT_FALSE(curve[0].ci95);
  EXPECT_FALSE(curve[1].speedup_ci95);
}

TEST(ScalingCurve, BaseMayHaveSeveralRanks) {
  const Points curve =
      scaling_points({{2, {repeat(16, 2, 8)}, {}}, {8, {repeat(16, 0.625, 8)}, {}}});
  EXPECT_EQ(curve[0].ranks, 2);
  EXPECT_DOUBLE_EQ(*curve[1].speedup, 3.2);
  EXPECT_DOUBLE_EQ(*curve[1].efficiency, 0.8);
}

TEST(ScalingCurve, ExposedIsTheStepBeyondTheBaseline) {
  const record::ScalingPoint point = scaling_points(two_rounds())[1];
  EXPECT_EQ(point.exposed_method, "baseline");
  EXPECT_DOUBLE_EQ(*point.exposed_seconds, 26.0 / 16 - 22.0 / 16);
  ASSERT_TRUE(point.exposed_ci95);
  EXPECT_DOUBLE_EQ(point.exposed_ci95->lo, 0.25);  // in both rounds
  EXPECT_DOUBLE_EQ(point.exposed_ci95->hi, 0.25);
  EXPECT_DOUBLE_EQ(*point.baseline_throughput, 320.0 / 22);
  EXPECT_EQ(point.repeats.size(), 4u);
  EXPECT_FALSE(point.repeats[1].baseline);
  EXPECT_TRUE(point.repeats[2].baseline);
}

TEST(ScalingCurve, WithoutABaselineExposedIsTheWaitWeightedBySteps) {
  const record::ScalingPoint point =
      scaling_points({{1, {repeat(10, 1, 4), repeat(10, 1, 12)}, {}},
                      {2, {repeat(20, 2, 4, 0.1), repeat(20, 2, 12, 0.3)}, {}}})[1];
  EXPECT_EQ(point.exposed_method, "wait");
  EXPECT_DOUBLE_EQ(*point.exposed_seconds, (4 * 0.1 + 12 * 0.3) / 16);
  EXPECT_FALSE(point.baseline_throughput);
  const auto interval = student_interval(std::vector{0.1, 0.3});
  EXPECT_DOUBLE_EQ(point.exposed_ci95->lo, interval->lo);
  EXPECT_DOUBLE_EQ(point.exposed_ci95->hi, interval->hi);
}

TEST(ScalingCurve, OneRankExposesNothing) {
  const record::ScalingPoint point = scaling_points(two_rounds())[0];
  EXPECT_FALSE(point.exposed_seconds);
  EXPECT_FALSE(point.exposed_method);
}

std::vector<PointRuns> on_resources(std::optional<int> base, std::optional<int> other) {
  auto points = two_rounds();
  for (PointRepeat& r : points[1].repeats) r.resources = base;
  for (PointRepeat& r : points[0].repeats) r.resources = other;
  return points;
}

TEST(ScalingCurve, EfficiencyCountsWhatItIsAskedTo) {
  const auto point = [](std::optional<int> base, std::optional<int> other, Resource resource) {
    return scaling_points(on_resources(base, other), {resource})[1];
  };
  const record::ScalingPoint by_core = point(2, 8, Resource::core);
  EXPECT_EQ(by_core.resources, 8);
  EXPECT_DOUBLE_EQ(*by_core.efficiency, *by_core.speedup / 4);
  EXPECT_DOUBLE_EQ(by_core.efficiency_ci95->hi, by_core.speedup_ci95->hi / 4);
  EXPECT_DOUBLE_EQ(*point(1, 1, Resource::node).efficiency, *by_core.speedup)
      << "two ranks on the same node";
  EXPECT_EQ(point(2, 8, Resource::rank).resources, 2);
  EXPECT_FALSE(point(2, std::nullopt, Resource::gpu).efficiency);
  EXPECT_FALSE(point(std::nullopt, 8, Resource::gpu).efficiency);
  EXPECT_FALSE(point(std::nullopt, 8, Resource::gpu).efficiency_ci95);
}

TEST(ScalingCurve, RepeatsOnUnlikeResourcesHaveNoEfficiency) {
  auto points = on_resources(1, 2);
  points[0].repeats[1].resources = 3;
  const auto curve = scaling_points(points, {Resource::node});
  EXPECT_FALSE(curve[1].resources);
  EXPECT_FALSE(curve[1].efficiency);
}

TEST(ScalingCurve, TimeToSolutionIsStepsTimesTheMeanStep) {
  // Mean steps: 24 s / 16 on one rank, 26 s / 16 on two; by round 1 and 2 s, 1.25 and 2 s.
  const auto curve = scaling_points(two_rounds(), {Resource::rank, 100, 1600, false});
  const record::ScalingPoint &base = curve[0], &two = curve[1];
  EXPECT_DOUBLE_EQ(*base.time_to_solution_seconds, 1600 * 1.5);
  EXPECT_DOUBLE_EQ(*base.time_to_solution_speedup, 1);
  EXPECT_FALSE(base.time_to_solution_speedup_ci95);
  EXPECT_DOUBLE_EQ(*two.time_to_solution_seconds, 100 * 1.625);
  EXPECT_DOUBLE_EQ(*two.time_to_solution_speedup, 2400 / 162.5);
  EXPECT_DOUBLE_EQ(*two.time_to_solution_efficiency, *two.time_to_solution_speedup / 2);
  // 16 x (1 / 1.25) and 16 x (2 / 2).
  const double half = 12.70620474 * std::log(1 / 0.8) / 2, center = 16 * std::sqrt(0.8);
  EXPECT_NEAR(two.time_to_solution_speedup_ci95->lo, center * std::exp(-half), 1e-5);
  EXPECT_NEAR(two.time_to_solution_speedup_ci95->hi / (center * std::exp(half)), 1, 1e-6);
}

TEST(ScalingCurve, WithLikeStepsTheTimeToSolutionOfStrongScalingIsTheSpeedup) {
  const auto points = scaling_points({{1, {repeat(16, 2, 8)}, {}}, {8, {repeat(16, 0.625, 8)}, {}}},
                                     {Resource::rank, 50, std::nullopt, false});
  EXPECT_DOUBLE_EQ(*points[1].time_to_solution_speedup, *points[1].speedup);
  EXPECT_FALSE(points[1].time_to_solution_speedup_ci95);
}

TEST(ScalingCurve, OfNoQuestionHasNoAnswer) {
  const record::ScalingPoint point = scaling_points(two_rounds())[1];
  EXPECT_FALSE(point.time_to_solution_seconds);
  EXPECT_FALSE(point.target);
}

TEST(ScalingCurve, TheTargetLossIsReachedWhereEveryRepeatReachedIt) {
  auto points = two_rounds();
  points[1].repeats[0].target_steps = 40, points[1].repeats[0].target_seconds = 10;
  points[1].repeats[1].target_steps = 42, points[1].repeats[1].target_seconds = 14;
  points[0].repeats[0].target_steps = 40, points[0].repeats[0].target_seconds = 10;
  CurveQuestions questions;
  questions.target_loss = true;
  const auto curve = scaling_points(points, questions);
  EXPECT_TRUE(curve[0].target->reached);
  EXPECT_DOUBLE_EQ(*curve[0].target->steps, 41);
  EXPECT_DOUBLE_EQ(*curve[0].target->seconds, 12);
  EXPECT_FALSE(curve[1].target->reached);
}

std::string refusal(const std::vector<PointRuns>& points) {
  try {
    scaling_points(points);
  } catch (const RunError& error) {
    return error.what();
  }
  return "accepted";
}

/// The two rounds as launches of which the second of two ranks has failed.
std::vector<PointRuns> launches_with_a_gap() {
  auto points = two_rounds();
  points[0].repeats = {points[0].repeats[0], repeat(20, 4, 8)};
  points[0].repeats[1].repeat = 3;
  points[0].repeats[0].repeat = 1;
  points[1].repeats.push_back(repeat(10, 5, 8));
  return points;
}

TEST(ScalingCurve, LaunchesThatFailedLeaveTheOthersPairedByTheirNumber) {
  CurveQuestions questions;
  questions.repeat_unit = RepeatUnit::launch;
  auto points = launches_with_a_gap();
  const record::ScalingPoint two = scaling_points(points, questions)[1];
  EXPECT_DOUBLE_EQ(*two.throughput, 320.0 / 42);                // of both its launches
  EXPECT_DOUBLE_EQ(*two.speedup, (320.0 / 42) / (160.0 / 48));  // of repeats 1 and 3 of one rank
  const double center = std::sqrt(16.0 / 10 * 5 / 2);
  ASSERT_TRUE(two.speedup_ci95);
  EXPECT_NEAR(std::sqrt(two.speedup_ci95->lo * two.speedup_ci95->hi), center, 1e-9);
  EXPECT_DOUBLE_EQ(*two.exposed_seconds, 1.25 - 1) << "repeat 1 alone has a baseline";
  EXPECT_FALSE(two.exposed_ci95);

  for (PointRepeat& r : points[0].repeats) r.repeat += 10;
  const record::ScalingPoint alone = scaling_points(points, questions)[1];
  EXPECT_DOUBLE_EQ(*alone.speedup, (320.0 / 42) / (240.0 / 64)) << "nothing in common: of all";
  EXPECT_FALSE(alone.speedup_ci95);
}

TEST(ScalingCurve, RoundsThatLackAPointAreRefused) {
  EXPECT_THROW(scaling_points(launches_with_a_gap()), RunError);
}

TEST(ScalingCurve, RefusesWhatCannotBeCompared) {
  EXPECT_THAT(refusal({}), HasSubstr("no points"));
  EXPECT_THAT(refusal({{4, {}, {}}}), HasSubstr("4 ranks has no repeats"));
  EXPECT_THAT(refusal({{1, {repeat(1, 1, 1)}, {}}, {2, {repeat(1, 1, 1), repeat(1, 1, 1)}, {}}}),
              HasSubstr("the point of 2 ranks has 2 repeats, that of 1 ranks has 1"));
  EXPECT_THAT(refusal({{2, {repeat(1, 1, 1), repeat(1, 1, 1)}, {baseline(1, 1, 1)}}}),
              HasSubstr("2 repeats but 1 without communication"));
  EXPECT_THAT(refusal({{2, {repeat(1, 1, 1), repeat(0, 1, 1)}, {}}}),
              HasSubstr("repeat 2 of 2 ranks has 0 units"));
}

}  // namespace
}  // namespace scalemark::scaling_test
