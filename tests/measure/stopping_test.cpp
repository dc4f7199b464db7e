// When a measured loop ends early.
#include "measure/stopping.hpp"

#include <gtest/gtest.h>

#include <random>

#include "measure/statistics.hpp"

namespace scalemark::stopping_test {
namespace {

std::vector<double> noisy_steps(std::size_t n, double spread) {
  std::mt19937_64 random(17);
  std::vector<double> x(n);
  for (double& value : x) value = std::normal_distribution<double>(0.5, 0.5 * spread)(random);
  return x;
}

/// The number of steps after which the rule ends the series; its length where it never does.
std::size_t steps_until_stop(StoppingRule rule, const std::vector<double>& x) {
  for (std::size_t n = 1; n <= x.size(); ++n)
    if (rule.check(std::span(x).first(n), 0)) return n;
  return x.size();
}

TEST(StoppingRule, WithoutConditionsNeverStops) {
  StoppingRule rule(std::nullopt, std::nullopt);
  EXPECT_FALSE(rule.check(std::vector<double>(1000, 0.1), 1e9));
}

TEST(StoppingRule, StopsWhenTheTimeIsUp) {
  StoppingRule rule(std::nullopt, 10);
  const std::vector<double> x(5, 0.1);
  EXPECT_FALSE(rule.check(x, 9.999));
  EXPECT_EQ(rule.check(x, 10), StopReason::max_seconds);
}

TEST(StoppingRule, StopsWhenTheLossHasComeDown) {
  const std::vector<double> losses{3, 2, 1, 0.5, 0.4};
  EXPECT_EQ(StoppingRule(std::nullopt, std::nullopt, 1).check_loss(losses),
            StopReason::target_loss);
  EXPECT_FALSE(StoppingRule(std::nullopt, std::nullopt, 0.9).check_loss(losses));
  EXPECT_FALSE(StoppingRule(std::nullopt, std::nullopt).check_loss(losses));
}

TEST(StoppingRule, StopsAtThePrecisionThatWasAskedFor) {
  const auto x = noisy_steps(5000, 0.05);
  const std::size_t n = steps_until_stop(StoppingRule(0.005, std::nullopt), x);
  ASSERT_LT(n, x.size());
  const auto interval = mean_interval(std::span(x).first(n));
  ASSERT_TRUE(interval);
  EXPECT_LE((interval->hi - interval->lo) / 2, 0.005 * mean(std::span(x).first(n)));
  EXPECT_GT(n, 200u);  // 1.96 x 0.05 / sqrt(n) = 0.005 at n = 384; a quarter of it would be luck
}

TEST(StoppingRule, ATighterTargetTakesLonger) {
  const auto x = noisy_steps(20000, 0.05);
  EXPECT_LT(steps_until_stop(StoppingRule(0.01, std::nullopt), x),
            steps_until_stop(StoppingRule(0.0025, std::nullopt), x));
}

TEST(StoppingRule, NeverStopsBeforeFiftySteps) {
  EXPECT_EQ(steps_until_stop(StoppingRule(0.5, std::nullopt), std::vector<double>(100, 0.1)), 50u);
}

TEST(StoppingRule, LooksOnlyAtGrowingIntervals) {
  // A look at 50 fails; the series turns constant, but the next look is at 62, not at 51.
  StoppingRule rule(1e-9, std::nullopt);
  EXPECT_FALSE(rule.check(noisy_steps(50, 0.1), 0));
  EXPECT_FALSE(rule.check(std::vector<double>(61, 0.1), 0));
  EXPECT_EQ(rule.check(std::vector<double>(62, 0.1), 0), StopReason::target_ci);
}

TEST(StoppingRule, ADriftingSeriesNeverReachesItsTarget) {
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i) x.push_back(0.1 + 0.001 * i);
  EXPECT_EQ(steps_until_stop(StoppingRule(0.05, std::nullopt), x), x.size());
}

}  // namespace
}  // namespace scalemark::stopping_test
