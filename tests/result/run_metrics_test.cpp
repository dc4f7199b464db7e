// What a run record derives from samples, against values computed by hand.
#include "result/run_metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "result/support.hpp"

namespace scalemark::run_metrics_test {
namespace {
using test::make_report;

TEST(RunMetrics, StepIsTheMaximumOverRanks) {
  const RunMetrics metrics = run_metrics(
      {make_report(0, {1.0, 2.0}, {0.5, 0.5}), make_report(1, {1.5, 1.0}, {0.25, 0.25})});
  EXPECT_EQ(metrics.step_seconds, (std::vector{1.5, 2.0}));
  EXPECT_DOUBLE_EQ(metrics.wall_seconds, 3.0);  // not 3.5, the sum of the maxima
  EXPECT_DOUBLE_EQ(metrics.mean_step, 1.5);
  EXPECT_EQ(metrics.rank_step, (std::vector{1.5, 1.25}));
  EXPECT_EQ(metrics.rank_wait, (std::vector{0.5, 0.25}));
  EXPECT_DOUBLE_EQ(metrics.wait, 0.375);
  EXPECT_EQ(metrics.straggler, (std::vector{false, false}));  // 1.0 and 1.0
}

TEST(RunMetrics, CommunicationIsPerStepAndTheMeanOverRanks) {
  auto a = make_report(0, {1, 1}, {0, 0}), b = make_report(1, {1, 1}, {0, 0});
  a.samples.communication_seconds = 1.0;
  b.samples.communication_seconds = 0.6;
  EXPECT_DOUBLE_EQ(run_metrics({a, b}).communication, 0.4);
}

TEST(RunMetrics, ARankThatStoppedEarlierCutsTheOthers) {
  const RunMetrics metrics =
      run_metrics({make_report(0, {1, 1, 9}, {0, 0, 9}), make_report(1, {2, 2}, {0, 0})});
  EXPECT_EQ(metrics.step_seconds, (std::vector{2.0, 2.0}));
  EXPECT_DOUBLE_EQ(metrics.rank_step[0], 1.0);
}

TEST(RunMetrics, NothingMeasured) {
  EXPECT_TRUE(run_metrics({}).step_seconds.empty());
  const RunMetrics metrics = run_metrics({make_report(0, {}, {})});
  EXPECT_TRUE(metrics.step_seconds.empty());
  EXPECT_EQ(metrics.mean_step, 0);
}

TEST(Stragglers, TwoRanksAgainstTheFaster) {
  EXPECT_EQ(stragglers({1.0, 1.09}), (std::vector{false, false}));
  EXPECT_EQ(stragglers({1.11, 1.0}), (std::vector{true, false}));
}

TEST(Stragglers, ThreeAndMoreAgainstTheMedian) {
  EXPECT_EQ(stragglers({0.5, 1.0, 1.05}), (std::vector{false, false, false}));
  EXPECT_EQ(stragglers({1.0, 1.0, 1.2, 1.0}), (std::vector{false, false, true, false}));
}

TEST(Stragglers, OneRankIsNone) { EXPECT_EQ(stragglers({5.0}), std::vector{false}); }

TEST(ThroughputInterval, NoneBelow30EffectiveSamples) {
  EXPECT_FALSE(throughput_interval(std::vector<double>(10, 1.0), 16));
}

TEST(ThroughputInterval, IsTheIntervalOfTheMeanStepTurnedOver) {
  std::vector<double> steps;
  for (int i = 0; i < 400; ++i) steps.push_back(1.0 + 0.01 * ((i * 7919) % 101 - 50) / 50.0);
  const double center = mean(steps);
  const auto interval = throughput_interval(steps, 16 / center);
  const auto of_steps = mean_interval(steps);
  ASSERT_TRUE(interval && of_steps);
  EXPECT_NEAR(interval->lo, 16 / of_steps->hi, 1e-9);
  EXPECT_NEAR(interval->hi, 16 / of_steps->lo, 1e-9);
  EXPECT_LT(interval->lo, 16 / center);
  EXPECT_GT(interval->hi, 16 / center);
  // Where the wall disagrees with the samples, the interval lies around what is published.
  EXPECT_NEAR(throughput_interval(steps, 20)->lo, 20 * center / of_steps->hi, 1e-9);
}

}  // namespace
}  // namespace scalemark::run_metrics_test
