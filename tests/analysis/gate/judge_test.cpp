// What a gate says of two sets: which repeats and points count, and where a regression comes from.
#include "analysis/gate/judge.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"
#include "record/read.hpp"

namespace scalemark::judge_test {
namespace {

using test::launch;
using test::rates;
using test::result_set;
using test::swept;
using Values = std::vector<double>;
using ::testing::HasSubstr;

/// `n` launches on one rank and `n` on two, each set repeat after repeat.
ResultSet two_points(const std::string& label, double one, double two, int n = 8) {
  ResultSet set = result_set(label, {});
  for (int k = 1; k <= n; ++k)
    for (const int ranks : {1, 2}) {
      set.launches.push_back(launch((ranks == 1 ? one : two) * (1 + 0.001 * k), ranks));
      set.launches.back().sweep = "/sweep/" + label;
      set.launches.back().repeat = k;
    }
  return set;
}

Judgement judged(const std::vector<ResultSet>& sets, GateMode mode, std::size_t pairs = 8) {
  return judge(sets, match_sets(sets, {}), mode, gate_design(pairs, 0.01));
}

std::string refusal(const std::vector<ResultSet>& sets) {
  try {
    judged(sets, GateMode::pairs);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "was not refused";
}

TEST(Judge, MeansOverPointsDecideAndPointsExplain) {
  const std::vector<ResultSet> sets{two_points("base", 100, 200), two_points("new", 100, 160)};
  const Judgement judgement = judged(sets, GateMode::sequential);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::regressed);
  EXPECT_NEAR(judgement.decision.slowdown_percent, 100 * (1 - std::sqrt(0.8)), 1e-9);
  ASSERT_EQ(judgement.points.size(), 2U);
  EXPECT_FALSE(judgement.points[0].regressed);
  EXPECT_TRUE(judgement.points[1].regressed);
  EXPECT_NEAR(judgement.points[1].slowdown_percent, 20, 1e-9);
  EXPECT_DOUBLE_EQ(*judgement.points[1].p_adjusted, 1. / 256);
  EXPECT_NEAR(judgement.points[1].value / judgement.points[1].base_value, 0.8, 1e-9);
  ASSERT_TRUE(judgement.interval_percent);
  EXPECT_NEAR(judgement.interval_percent->lo, judgement.interval_percent->hi, 1e-6);
}

TEST(Judge, AFastPointHidesNoSlowOne) {
  const std::vector<ResultSet> sets{two_points("base", 100, 200, 10),
                                    two_points("new", 125, 160, 10)};
  const Judgement judgement = judged(sets, GateMode::sequential, 10);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::regressed);
  EXPECT_FALSE(judgement.points[0].regressed);
  EXPECT_TRUE(judgement.points[1].regressed);
}

TEST(Judge, FailedLaunchesOfTheNewSetAreNoVerdict) {
  std::vector<ResultSet> sets{two_points("base", 100, 200), two_points("new", 100, 200)};
  sets[1].failed = 2;
  sets[1].left_out = {"2 records with status failed"};
  try {
    judged(sets, GateMode::pairs);
    ADD_FAILURE() << "passed";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 launches of new did not end well (2 records with "
                                        "status failed)"));
  }
  EXPECT_EQ(judge(sets, match_sets(sets, {}), GateMode::pairs, {}, 2).decision.verdict,
            GateVerdict::pass);
}

TEST(Judge, FailedLaunchesOfTheBaseLeaveItInconclusive) {
  std::vector<ResultSet> sets{two_points("base", 100, 200), two_points("new", 100, 150)};
  sets[0].failed = 1;
  const Judgement judgement = judged(sets, GateMode::pairs);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(judgement.warnings.back(), HasSubstr("measure the base again"));
}

TEST(Judge, SaysThatFewLaunchesCannotFail) {
  const std::vector<ResultSet> sets{two_points("base", 100, 200, 4), two_points("new", 50, 90, 4)};
  const Judgement judgement = judged(sets, GateMode::samples);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(judgement.warnings.back(), HasSubstr("this gate cannot fail: 4 of each"));
}

TEST(Judge, OnlyCompleteRepeatsCount) {
  ResultSet fresh = two_points("new", 100, 160);
  fresh.launches.pop_back();  // repeat 8 on two ranks
  const std::vector<ResultSet> sets{two_points("base", 100, 200), fresh};
  const Judgement judgement = judged(sets, GateMode::pairs);
  EXPECT_EQ(judgement.decision.pairs, 7U);
  EXPECT_THAT(judgement.warnings.at(0), HasSubstr("2 of 16 repeats lack a point or a partner"));
  EXPECT_EQ(judged(sets, GateMode::sequential).decision.verdict, GateVerdict::more_pairs);
}

TEST(Judge, TwoSamplesNeedNoPartners) {
  const std::vector<ResultSet> sets{rates("base", {100, 101, 102, 103, 104, 105}),
                                    rates("new", {90, 91, 92, 93, 94})};
  const Judgement judgement = judged(sets, GateMode::samples);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::regressed);
  EXPECT_EQ(judgement.decision.pairs, 5U);
  EXPECT_DOUBLE_EQ(judgement.decision.p, 1. / 462);
}

TEST(Judge, APointThatOnlyTheNewSetHasIsAWarningTheOtherWayAnError) {
  const ResultSet both = two_points("both", 100, 200), one = swept(rates("one", Values(8, 100)));
  const Judgement judgement = judged({one, both}, GateMode::pairs);
  EXPECT_EQ(judgement.points.size(), 1U);
  EXPECT_THAT(judgement.warnings.at(0), HasSubstr("ranks 2 is in both only"));
  EXPECT_THAT(refusal({both, one}), HasSubstr("one has no launch with ranks 2, which both has"));
}

TEST(Judge, BuildsAreNotPooled) {
  ResultSet mixed = rates("mixed", Values(8, 100));
  mixed.launches.front().revision = "def";
  EXPECT_THAT(refusal({rates("base", Values(8, 100)), mixed}),
              HasSubstr("several builds (abc, def)"));
}

TEST(Judge, RepeatsOfDifferentPointsAreNone) {
  ResultSet set = two_points("new", 100, 200, 2);
  std::erase_if(set.launches,
                [](const auto& one) { return (one.ranks == 1) == (one.repeat == 1); });
  EXPECT_THAT(refusal({two_points("base", 100, 200, 2), set}),
              HasSubstr("no repeat that went through all 2 points"));
}

/// A record that contradicts itself is refused by whatever reads it next.
TEST(Judge, MakesNoVerdictThatContradictsItself) {
  std::mt19937_64 random(3);
  const auto noisy = [&](const std::string& label, double slowdown, int n) {
    std::normal_distribution<double> noise(-slowdown, 0.01);
    Values all;
    for (int k = 0; k < n; ++k) all.push_back(100 * std::exp(noise(random)));
    return rates(label, all);
  };
  for (const GateMode mode : {GateMode::sequential, GateMode::pairs, GateMode::samples})
    for (const int n : {1, 5, 8, 18})
      for (int i = 0; i < 12; ++i) {
        const std::vector<ResultSet> sets{noisy("base", 0, n),
                                          noisy("new", 0.003 * (i % 3 - 1), n)};
        const Matching matching = match_sets(sets, {});
        const GateDesign design = gate_design(static_cast<std::size_t>(n), 0.2);
        const Judgement judgement = judge(sets, matching, mode, design);
        const Verdict made = make_verdict({sets, matching, {}, {}, {}, {}, {}}, judgement);
        EXPECT_EQ(contradiction(verdict_json(made)), std::nullopt)
            << to_string(mode) << " of " << n;
      }
}

/// Launches that start one every two minutes, the first at `minute`.
ResultSet started(ResultSet set, int minute) {
  for (MeasuredLaunch& one : set.launches) {
    one.started_at = fmt::format("2026-11-01T{:02d}:{:02d}:00Z", minute / 60, minute % 60);
    minute += 2;
  }
  return set;
}

Values around(double rate, int n) {
  Values all;
  for (int k = 0; k < n; ++k) all.push_back(rate * (1 + 0.001 * (k * k % 5)));
  return all;
}

/// The base is always first of a pair, and the second launch is 1.5 % slower: whatever the sets are
/// declared to be, that is no regression.
TEST(Judge, AnOrderThatGoesWithTheBuildIsInconclusive) {
  const std::vector<ResultSet> sets{started(rates("base", around(100, 10)), 0),
                                    started(rates("new", around(98.5, 10)), 1)};
  for (const GateMode mode : {GateMode::pairs, GateMode::samples}) {
    const Judgement judgement = judged(sets, mode, 10);
    EXPECT_EQ(judgement.decision.verdict, GateVerdict::inconclusive) << to_string(mode);
    ASSERT_FALSE(judgement.warnings.empty());
    EXPECT_THAT(judgement.warnings[0], HasSubstr("base came first in 10 of 10 pairs"));
    EXPECT_THAT(judgement.warnings[0], HasSubstr("half of the pairs"));
  }
  // One set after the other is no pairs, whatever is declared.
  const std::vector<ResultSet> apart{started(rates("base", around(100, 10)), 0),
                                     started(rates("new", around(98.5, 10)), 60)};
  EXPECT_EQ(judged(apart, GateMode::pairs, 10).decision.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(judged(apart, GateMode::samples, 10).decision.verdict, GateVerdict::regressed);
}

/// Either build comes first in half of the pairs: the effect of the order is told, and cancels.
TEST(Judge, AnOrderThatChangesIsToldFromTheBuild) {
  std::vector<ResultSet> sets{rates("base", around(100, 10)), rates("new", around(100, 10))};
  for (std::size_t k = 0; k < 10; ++k) {
    const bool base_first = k % 4 == 0 || k % 4 == 3;
    for (std::size_t set = 0; set < 2; ++set) {
      MeasuredLaunch& one = sets[set].launches[k];
      const bool first = (set == 0) == base_first;
      one.started_at = fmt::format("2026-11-01T00:{:02d}:00Z", 4 * k + (first ? 0 : 2));
      if (!first) one.repeats[0].units *= 0.985;
    }
  }
  const Judgement judgement = judged(sets, GateMode::pairs, 10);
  EXPECT_NE(judgement.decision.verdict, GateVerdict::regressed);
  ASSERT_FALSE(judgement.warnings.empty());
  EXPECT_THAT(judgement.warnings[0], HasSubstr("the second launch of a pair is 1.5 % lower"));
}

/// Two samples in whose pairs the base is first seven of ten times, and the second launch 4 %
/// slower: 1.6 % of that are left.
TEST(Judge, WhatAnUnevenOrderMakesIsNotTheBuild) {
  std::vector<ResultSet> sets{rates("base", around(100, 10)), rates("new", around(100, 10))};
  for (std::size_t k = 0; k < 10; ++k)
    for (const std::size_t set : {0U, 1U}) {
      MeasuredLaunch& one = sets[set].launches[k];
      const bool second = (set == 1) == (k % 3 != 1);
      one.started_at = fmt::format("2026-11-01T00:{:02d}:00Z", 4 * k + (second ? 2 : 0));
      if (second) one.repeats[0].units *= 0.96;
    }
  for (const GateMode mode : {GateMode::pairs, GateMode::samples}) {
    const Judgement judgement = judged(sets, mode, 10);
    EXPECT_EQ(judgement.decision.verdict, GateVerdict::inconclusive) << to_string(mode);
    EXPECT_THAT(judgement.warnings,
                ::testing::Contains(HasSubstr("base came first in 7 of 10 pairs: of what")));
  }
}

/// Nine of ten pairs of one order leave the effect of the order open; of eight it is told.
TEST(Judge, HowManyPairsHaveTheSameOrderDecides) {
  for (const int fresh_first : {1, 2}) {
    std::vector<ResultSet> sets{rates("base", around(100, 10)), rates("new", around(95, 10))};
    for (int k = 0; k < 10; ++k)
      for (const std::size_t set : {0U, 1U})
        sets[set].launches[static_cast<std::size_t>(k)].started_at = fmt::format(
            "2026-11-01T00:{:02d}:00Z", 4 * k + ((set == 0) == (k < fresh_first) ? 2 : 0));
    const Judgement judgement = judged(sets, GateMode::pairs, 10);
    const bool open = fresh_first == 1;
    EXPECT_EQ(judgement.decision.verdict,
              open ? GateVerdict::inconclusive : GateVerdict::regressed);
    EXPECT_THAT(
        judgement.warnings,
        ::testing::Contains(HasSubstr(open ? "base came first in 9 of 10 pairs, so that"
                                           : "base came first in 8 of 10 pairs: of what the "
                                             "second launch of a pair loses, 60 %")));
  }
}

/// A launch starts each minute, in the order of the letters, of which A is the base; each is
/// `fall` slower than the one before it, and the new build `slowdown`.
std::vector<ResultSet> drifting(const std::string& order, double fall, double slowdown = 0) {
  std::vector<ResultSet> sets{result_set("base", {}), result_set("new", {})};
  for (std::size_t place = 0; place < order.size(); ++place) {
    const bool is_base = order[place] == 'A';
    const double noise = 0.001 * static_cast<double>(place * place % 7);
    sets[is_base ? 0 : 1].launches.push_back(launch(
        100 * std::exp(noise - fall * static_cast<double>(place)) * (is_base ? 1 : 1 - slowdown)));
    sets[is_base ? 0 : 1].launches.back().started_at =
        fmt::format("2026-11-01T00:{:02d}:00Z", place);
  }
  return sets;
}

std::string repeated(const std::string& word, int times) {
  std::string all;
  for (int k = 0; k < times; ++k) all += word;
  return all;
}

TEST(Judge, ADriftFromOneSetToTheOtherIsInconclusive) {
  const std::string apart = repeated("A", 10) + repeated("B", 10);
  const Judgement judgement = judged(drifting(apart, 0.01), GateMode::samples, 10);
  EXPECT_EQ(judgement.decision.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(judgement.warnings,
              ::testing::Contains(::testing::AllOf(HasSubstr("the trend within base and new"),
                                                   HasSubstr("measure both side by side"))));
  // Without a drift, and with one that can't make that much, the build is what is left.
  for (const double fall : {0., 0.0005})
    EXPECT_EQ(judged(drifting(apart, fall, 0.1), GateMode::samples, 10).decision.verdict,
              GateVerdict::regressed);
}

/// A fall by a fifth over all launches makes 1 % from each to the next: beside ABAB that is what
/// the build would make, beside ABBA nothing.
TEST(Judge, ADriftIsToldFromTheBuildInABalancedOrderOnly) {
  for (const GateMode mode : {GateMode::pairs, GateMode::samples}) {
    const Judgement confounded = judged(drifting(repeated("AB", 10), 0.01), mode, 10);
    EXPECT_EQ(confounded.decision.verdict, GateVerdict::inconclusive) << to_string(mode);
    EXPECT_THAT(confounded.warnings,
                ::testing::Contains(HasSubstr("let either build come first in half")));
  }
  const Judgement none = judged(drifting(repeated("ABBA", 5), 0.01), GateMode::pairs, 10);
  EXPECT_NE(none.decision.verdict, GateVerdict::regressed);
  EXPECT_THAT(none.warnings, ::testing::Not(::testing::Contains(HasSubstr("can't be told"))));
  EXPECT_EQ(judged(drifting(repeated("ABBA", 5), 0.01, 0.05), GateMode::pairs, 10).decision.verdict,
            GateVerdict::regressed);
}

TEST(Judge, NamesSlowLaunchesAndUnlikeSpreads) {
  Values fresh = around(100, 20);
  for (const std::size_t k : {2U, 7U, 12U, 17U}) fresh[k] = 50;
  const Judgement slow =
      judged({rates("base", around(100, 20)), rates("new", fresh)}, GateMode::samples, 20);
  EXPECT_EQ(slow.decision.verdict, GateVerdict::inconclusive);
  EXPECT_THAT(slow.warnings, ::testing::Contains(HasSubstr("the mean of all launches is")));
  EXPECT_THAT(slow.warnings, ::testing::Contains(HasSubstr("4 of 20 launches of new")));
  EXPECT_THAT(slow.warnings, ::testing::Contains(HasSubstr("(3, 8, 13, 18), of base 0")));
  Values quiet, noisy;
  for (int k = 0; k < 20; ++k) {
    const double noise = 0.1 * (7 * k % 11 - 5);
    quiet.push_back(100 + noise);
    noisy.push_back(100 + 10 * noise);
  }
  const Judgement unlike =
      judged({rates("base", quiet), rates("new", noisy)}, GateMode::samples, 20);
  EXPECT_THAT(unlike.warnings, ::testing::Contains(HasSubstr("the spreads differ: that of new")));
}

TEST(Judge, ExitCodes) {
  Judgement judgement;
  for (const auto& [verdict, code] : {std::pair(GateVerdict::regressed, ExitCode::regression),
                                      {GateVerdict::pass, ExitCode::ok},
                                      {GateVerdict::inconclusive, ExitCode::inconclusive}}) {
    judgement.decision.verdict = verdict;
    EXPECT_EQ(exit_code_of(judgement), code);
  }
}

}  // namespace
}  // namespace scalemark::judge_test
