// The gate's verdicts by hand. Its false alarms and its power: lab/tests/gate_simulation_test.cpp.
#include "analysis/gate/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "measure/significance.hpp"

namespace scalemark::gate_test {
namespace {

using Values = std::vector<double>;

/// `n` log ratios of a slowdown, with a little noise that is the same for all.
Values slower(double slowdown, std::size_t n) {
  Values ratios;
  for (std::size_t i = 0; i < n; ++i)
    ratios.push_back(std::log1p(-slowdown) + 0.0001 * static_cast<double>(i % 3));
  return ratios;
}

Series slower_at_one(double slowdown, std::size_t n) { return {slower(slowdown, n)}; }

TEST(Gate, AsksForPairsUntilTheFirstLook) {
  const GateDecision early = decide(slower_at_one(0.1, 7));
  EXPECT_EQ(early.verdict, GateVerdict::more_pairs);
  EXPECT_EQ(early.pairs, 7U);
  EXPECT_EQ(early.next_pairs, 8U);
}

TEST(Gate, FindsAClearSlowdownAtTheFirstLook) {
  const GateDecision decision = decide(slower_at_one(0.1, 20));
  EXPECT_EQ(decision.verdict, GateVerdict::regressed);
  EXPECT_EQ(decision.pairs, 8U);
  EXPECT_EQ(decision.next_pairs, 0U);
  EXPECT_NEAR(decision.slowdown_percent, 10, 0.02);
  EXPECT_DOUBLE_EQ(decision.p, 1. / 256);
}

TEST(Gate, PassesWhatIsAsFastOrFaster) {
  EXPECT_EQ(decide(slower_at_one(0, 8)).verdict, GateVerdict::pass);
  EXPECT_EQ(decide(slower_at_one(-0.1, 8)).verdict, GateVerdict::pass);
}

TEST(Gate, PassesASlowdownBelowTheThresholdHoweverSure) {
  const GateDecision decision = decide(slower_at_one(0.005, 8));
  EXPECT_DOUBLE_EQ(decision.p, 1. / 256);
  EXPECT_EQ(decision.verdict, GateVerdict::pass);
  GateDesign strict;
  strict.threshold = 0.003;
  EXPECT_EQ(decide(slower_at_one(0.005, 8), strict).verdict, GateVerdict::regressed);
}

TEST(Gate, IsInconclusiveWhereNoiseHidesBoth) {
  Values noisy;
  for (int i = 0; i < 20; ++i) noisy.push_back(i % 2 ? 0.3 : -0.31);
  const GateDecision more = decide({Values(noisy.begin(), noisy.begin() + 12)});
  EXPECT_EQ(more.verdict, GateVerdict::more_pairs);
  EXPECT_EQ(more.pairs, 12U);
  EXPECT_EQ(more.next_pairs, 14U);
  const GateDecision decision = decide({noisy});
  EXPECT_EQ(decision.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(decision.pairs, 20U);
  const double error = standard_deviation(noisy) / std::sqrt(20.);
  EXPECT_NEAR(decision.detectable_percent.value(),
              -100 * std::expm1(-minimum_detectable_difference({error, 19}, 0.02, 0.8)), 1e-9);
}

/// Repeats of one set around a log rate.
Values around(double centre, std::size_t n) {
  Values logs;
  for (std::size_t i = 0; i < n; ++i) logs.push_back(centre + 0.001 * static_cast<double>(i));
  return logs;
}

TEST(Gate, JudgesTwoSamplesOnce) {
  const GateDesign design = gate_design(5, 0.01);
  const GateDecision slower = decide_once({{around(5, 5)}, {around(4.9, 5)}, false}, design);
  EXPECT_EQ(slower.verdict, GateVerdict::regressed);
  EXPECT_NEAR(slower.slowdown_percent, -100 * std::expm1(-0.1), 1e-9);
  EXPECT_DOUBLE_EQ(slower.p, 1. / 252);
  EXPECT_EQ(decide_once({{around(5, 5)}, {around(5, 5)}, false}, design).verdict,
            GateVerdict::pass);
  EXPECT_EQ(decide_once({{around(5, 5)}, {around(4.99, 5)}, false}, design).verdict,
            GateVerdict::pass);
}

TEST(Gate, FewRepeatsProveNothing) {
  const GateDecision four =
      decide_once({{around(5, 4)}, {around(4, 4)}, false}, gate_design(4, 0.01));
  EXPECT_EQ(four.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(four.detectable_percent, std::nullopt);
  EXPECT_FALSE(four.can_fail);
  // What can't fail can't pass either, however alike both are.
  const GateDecision alike = decide_once({{around(5, 4)}, {around(5, 4)}, false}, {});
  EXPECT_EQ(alike.verdict, GateVerdict::inconclusive);
  EXPECT_GE(alike.repeats_for_pass.value(), 5U);
  const GateDecision six =
      decide_once({{around(5, 6)}, {around(4, 6)}, true}, gate_design(6, 0.01));
  EXPECT_EQ(six.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(decide_once({{around(5, 7)}, {around(4, 7)}, true}, gate_design(7, 0.01)).verdict,
            GateVerdict::regressed);
}

TEST(Gate, LooksFitThePairsAndTheLevel) {
  const auto looks = [](const GateDesign& design) {
    std::vector<std::pair<std::size_t, double>> all;
    for (const SequentialLook& look : design.alarm) all.emplace_back(look.pairs, look.spent);
    return all;
  };
  using Looks = std::vector<std::pair<std::size_t, double>>;
  EXPECT_EQ(looks(gate_design(20, 0.01)), looks({}));
  EXPECT_EQ(looks(gate_design(7, 0.01)), (Looks{{7, 0.01}}));
  EXPECT_EQ(looks(gate_design(12, 0.05)), (Looks{{8, 0.02}, {10, 0.03}, {12, 0.05}}));
  EXPECT_EQ(gate_design(12, 0.05).pass.back().spent, 0.05);
  EXPECT_THROW(gate_design(23, 0.01), std::invalid_argument);
  EXPECT_EQ(least_pairs(0.01), 7U);
  EXPECT_EQ(least_pairs(0.05), 5U);
  EXPECT_EQ(least_launches(0.01), 5U);
  EXPECT_EQ(least_launches(0.05), 3U);
}

/// `n` log rates around 0 with noise of 1 %; of every `slow_every` one is far slower.
Values noisy_rates(std::size_t n, std::mt19937_64& random, std::size_t slow_every = 0,
                   double slow = 0.5) {
  Values logs;
  for (std::size_t i = 0; i < n; ++i)
    logs.push_back(0.01 * std::normal_distribution<double>()(random) +
                   (slow_every > 0 && i % slow_every == 0 ? std::log(slow) : 0));
  return logs;
}

Values ratios_of(const Values& base, const Values& fresh) {
  Values ratios;
  for (std::size_t i = 0; i < base.size(); ++i) ratios.push_back(fresh[i] - base[i]);
  return ratios;
}

/// A quarter of the new launches at half speed, or a tenth of them 30 % slower: the robust mean
/// lies within 2 %, but no pass may stand beside the bare one.
TEST(Gate, ASlowModeOfTheNewBuildIsNoPass) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 5; ++i) {
    const Values base = noisy_rates(20, random);
    for (const Values& fresh : {noisy_rates(20, random, 4), noisy_rates(20, random, 10, 0.7)}) {
      for (const bool paired : {false, true})
        EXPECT_NE(decide_once({{base}, {fresh}, paired}, {}).verdict, GateVerdict::pass);
      EXPECT_NE(decide({ratios_of(base, fresh)}).verdict, GateVerdict::pass);
    }
  }
}

TEST(Gate, ALargerShareOfSlowLaunchesIsARegression) {
  std::mt19937_64 random(5);
  const Values base = noisy_rates(40, random), fresh = noisy_rates(40, random, 4);
  const GateDecision decision = decide_once({{base}, {fresh}, false}, {});
  EXPECT_EQ(decision.verdict, GateVerdict::regressed);
  EXPECT_EQ(decision.slow_points, std::vector<std::size_t>{0});
  // The same share in both is none.
  const Values alike = noisy_rates(40, random, 4);
  EXPECT_TRUE(decide_once({{alike}, {fresh}, false}, {}).slow_points.empty());
}

/// No pass excludes what the interval beside it holds.
TEST(Gate, APassAgreesWithItsInterval) {
  std::mt19937_64 random(7);
  int passed = 0;
  for (int i = 0; i < 40; ++i) {
    const LogRates logs{{noisy_rates(10, random)}, {noisy_rates(10, random)}, i % 2 == 0};
    if (decide_once(logs, {}).verdict != GateVerdict::pass) continue;
    ++passed;
    EXPECT_GT(answer_of(logs, {}).interval->interval.lo, std::log1p(-0.02));
  }
  EXPECT_GT(passed, 20);
}

/// Both builds have one launch in ten 30 % slower: a larger slowdown is found more often.
TEST(Gate, FindsALargerSlowdownMoreOften) {
  const auto found = [](double slowdown) {
    std::mt19937_64 random(9);
    const auto launches = [&](double log_rate) {
      Values logs;
      for (int i = 0; i < 8; ++i)
        logs.push_back(log_rate + 0.005 * std::normal_distribution<double>()(random) +
                       (random() % 10 == 0 ? std::log(0.7) : 0));
      return logs;
    };
    int count = 0;
    for (int i = 0; i < 60; ++i) {
      const Values base = launches(0), fresh = launches(std::log1p(-slowdown));
      count += decide_once({{base}, {fresh}, false}, {}).p <= 0.01;
    }
    return count;
  };
  const int three = found(0.03), five = found(0.05);
  EXPECT_GE(five, three);
  EXPECT_GE(three, 42);
}

TEST(Gate, RefusesADesignWithUnlikeLooks) {
  GateDesign design;
  design.pass.pop_back();
  EXPECT_THROW(decide(slower_at_one(0, 8), design), std::invalid_argument);
}

/// Points with a little noise of their own; [point][pair].
Series points(const Values& slowdowns, std::size_t n) {
  std::mt19937_64 random(5);
  Series series;
  for (const double slowdown : slowdowns) {
    Values ratios;
    for (std::size_t i = 0; i < n; ++i)
      ratios.push_back(std::log1p(-slowdown) + 0.01 * std::normal_distribution<double>()(random));
    series.push_back(ratios);
  }
  return series;
}

TEST(Gate, GainsElsewhereHideNoLoss) {
  const GateDecision decision = decide(points({0.1, -0.06, -0.06}, 20));
  EXPECT_EQ(decision.verdict, GateVerdict::regressed);
  EXPECT_EQ(decision.pairs, 10U);
  EXPECT_LT(decision.slowdown_percent, 1);
  EXPECT_LE(decision.point_p[0], 0.01);
  EXPECT_GT(decision.point_p[1], 0.5);
}

TEST(Gate, APassExcludesALossAtAnyPoint) {
  Series series = points({0, 0, 0}, 20);
  for (std::size_t i = 0; i < 20; ++i) series[1][i] *= 30;  // a point that is all noise
  const GateDecision decision = decide(series);
  EXPECT_EQ(decision.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(decision.open, std::vector<std::size_t>{1});
  EXPECT_EQ(decide(points({0, 0, 0}, 20)).verdict, GateVerdict::pass);
  EXPECT_EQ(decide_once({Series(3, Values(20, 0.)), series, true}, {}).verdict,
            GateVerdict::inconclusive);
}

TEST(Gate, TwoSamplesHideNoPointEither) {
  const Series base = points({0, 0, 0, 0}, 8);
  Series fresh = points({0.1, -0.03, -0.03, -0.04}, 8);
  std::ranges::rotate(fresh[0], fresh[0].begin() + 3);
  const GateDecision decision = decide_once({base, fresh, false}, {});
  EXPECT_EQ(decision.verdict, GateVerdict::regressed);
  EXPECT_LT(decision.slowdown_percent, 1);
}

TEST(Gate, OneBurstDecidesNothing) {
  Values ratios = slower(0.03, 14);
  for (std::size_t i = 0; i < 14; ++i) ratios[i] += 0.004 * (static_cast<double>(i % 5) - 2);
  ratios[5] = 0.35;
  const GateDecision decision = decide_once({{Values(14, 0.)}, {ratios}, true}, {});
  EXPECT_EQ(decision.verdict, GateVerdict::regressed);
  EXPECT_NEAR(decision.slowdown_percent, 3, 1);
}

}  // namespace
}  // namespace scalemark::gate_test
