// Points are matched by what was measured, never by position; what differs is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"

namespace scalemark::match_sets_test {
namespace {
using test::launch;
using test::result_set;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::vector<ResultSet>& sets,
                    const std::vector<std::string>& varied = {}) {
  try {
    match_sets(sets, varied);
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

TEST(MatchSets, ByConfigurationNotByPosition) {
  const std::vector<ResultSet> sets{
      result_set("a", {launch(10, 4), launch(20, 1), launch(30, 2), launch(31, 2)}),
      result_set("b", {launch(40, 2), launch(50, 8), launch(60, 1)})};
  const Matching matching = match_sets(sets, {});
  ASSERT_EQ(matching.points.size(), 4U);
  const int ranks[] = {1, 2, 4, 8};
  const std::size_t ours[] = {1, 2, 1, 0}, theirs[] = {1, 1, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(matching.points[i].ranks, ranks[i]);
    EXPECT_EQ(matching.points[i].launches[0].size(), ours[i]);
    EXPECT_EQ(matching.points[i].launches[1].size(), theirs[i]);
  }
  EXPECT_EQ(matching.points[0].launches[0][0], &sets[0].launches[1]);
  EXPECT_EQ(matching.points[0].launches[1][0], &sets[1].launches[2]);
  EXPECT_TRUE(matching.points[1].settings.empty());
}

TEST(MatchSets, RefusesWhatDiffersNamingKeysAndValues) {
  const std::vector<ResultSet> sets{result_set("a", {launch(1)}),
                                    result_set("b", {launch(1, 1, "bf16")})};
  EXPECT_THAT(refusal(sets),
              AllOf(HasSubstr("precision (a: fp32; b: bf16)"), HasSubstr("--varied precision"),
                    testing::Not(HasSubstr("seed"))));
  EXPECT_EQ(match_sets(sets, {"precision"}).points.size(), 1U);
}

TEST(MatchSets, RefusesUnlikeBuildTypes) {
  std::vector<ResultSet> sets{result_set("a", {launch(1)}), result_set("b", {launch(1)})};
  sets[0].launches[0].keys["build_type"] = "Debug";
  sets[1].launches[0].keys["build_type"] = "Release";
  EXPECT_THAT(refusal(sets), HasSubstr("build_type (a: Debug; b: Release)"));
  EXPECT_EQ(match_sets(sets, {"build_type"}).points.size(), 1U);
}

TEST(SetWarnings, CopiesAreCounted) {
  ResultSet set = result_set("a", {launch(1), launch(2)});
  EXPECT_THAT(set_warnings({set, set}), testing::IsEmpty());
  set.copies = 6;
  EXPECT_THAT(set_warnings({result_set("base", {launch(1)}), set}),
              testing::ElementsAre(HasSubstr("6 of 8 launches of a equal another one")));
}

/// Of a set whose launches ran on these hosts.
ResultSet on_hosts(const std::string& label, const std::vector<std::string>& hosts) {
  ResultSet set = result_set(label, {});
  for (const std::string& host : hosts) {
    set.launches.push_back(launch(1));
    set.launches.back().host = host;
  }
  return set;
}

TEST(SetWarnings, HostsOfTheirOwnCanNotBeToldFromTheBuild) {
  const ResultSet base = on_hosts("base", {"n1", "n2"}), other = on_hosts("new", {"n3"});
  EXPECT_THAT(set_warnings({base, other}),
              testing::ElementsAre(AllOf(HasSubstr("different hosts (base: n1, n2; new: n3)"),
                                         HasSubstr("measure both builds on the same hosts"))));
  EXPECT_THAT(set_warnings({base, other}, /*by_host=*/true), testing::IsEmpty());
  EXPECT_THAT(set_warnings({base, on_hosts("new", {"n3", "n2"})}), testing::IsEmpty());
  EXPECT_THAT(set_warnings({base, on_hosts("new", {""})}), testing::IsEmpty());  // not told
}

/// Of a set of two launches on the 20th, the second with a preflight of this day.
ResultSet checked_on(const std::string& label, const std::string& day) {
  ResultSet set = result_set(label, {launch(1), launch(1)});
  for (MeasuredLaunch& one : set.launches) one.started_at = "2026-11-20T12:00:00Z";
  set.launches[1].preflight_at = "2026-11-" + day + "T11:00:00Z";
  return set;
}

TEST(SetWarnings, OldPreflightsSayLittle) {
  EXPECT_THAT(set_warnings({checked_on("a", "20"), checked_on("b", "20")}), testing::IsEmpty());
  EXPECT_THAT(set_warnings({checked_on("a", "20"), checked_on("b", "10")}),
              testing::ElementsAre(
                  HasSubstr("1 of 2 launches of b name a preflight that is up to 11 days older"),
                  HasSubstr("the preflights of a and b were made 10 days apart")));
}

TEST(MatchSets, AChangedDefaultIsPartOfTheBuild) {
  std::vector<ResultSet> sets{result_set("base", {launch(1)}), result_set("new", {launch(1)})};
  for (std::size_t i = 0; i < 2; ++i) {
    sets[i].launches[0].keys["overlap"] = i == 0 ? "backward" : "step";
    sets[i].launches[0].defaults.insert("overlap");
  }
  const auto changed = changed_defaults(sets[0], sets[1]);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed.at("overlap"),
            "the default of overlap is backward in base and step in new: it is part of the build");
  sets[1].launches[0].defaults.erase("overlap");  // somebody has set it
  EXPECT_TRUE(changed_defaults(sets[0], sets[1]).empty());
}

TEST(MatchSets, ImagesAreNoTokens) {
  MeasuredLaunch images = launch(1), tokens = launch(2);
  images.unit = "images/sec";
  EXPECT_EQ(common_unit({&images, &images}), "images/sec");
  tokens.unit = "tokens/sec";
  EXPECT_THROW(common_unit({&images, &tokens}), ConfigError);
}

TEST(MatchSets, MixesKernelsOnlyWhereAsked) {
  std::vector<ResultSet> sets{result_set("a", {launch(1)}), result_set("b", {launch(1)})};
  sets[0].launches[0].keys["kernels"] = "scalemark";
  sets[0].launches[0].defaults.insert("kernels");
  EXPECT_EQ(match_sets(sets, {}).points.size(), 1U);  // b is from before there was a choice
  sets[1].launches[0].keys["kernels"] = "torch";
  EXPECT_THAT(refusal(sets),
              AllOf(HasSubstr("kernels (a: scalemark; b: torch)"), HasSubstr("--varied kernels")));
  EXPECT_EQ(match_sets(sets, {"kernels"}).points.size(), 1U);
}

TEST(MatchSets, RefusesADifferenceThatShowsAtSomeRanksOnly) {
  std::vector<ResultSet> sets{result_set("a", {launch(1), launch(1, 2)}),
                              result_set("b", {launch(1), launch(1, 2)})};
  sets[1].launches[1].keys["transport"] = "vader";
  EXPECT_THAT(refusal(sets), HasSubstr("transport (a: tcp; b: vader)"));
  EXPECT_EQ(match_sets(sets, {"transport"}).points.size(), 2U);
}

TEST(MatchSets, ListsPointsThatOneSetHasMore) {
  const std::vector<ResultSet> sets{result_set("a", {launch(1), launch(1, 1, "bf16")}),
                                    result_set("b", {launch(1), launch(1, 1, "fp16")})};
  const Matching matching = match_sets(sets, {});
  ASSERT_EQ(matching.points.size(), 3U);
  for (const MatchedPoint& point : matching.points) {
    EXPECT_EQ(point.settings.size(), 1U);
    EXPECT_EQ(point.launches[0].size() + point.launches[1].size(),
              point.settings.at("precision") == "fp32" ? 2U : 1U);
  }
}

TEST(MatchSets, NamesPointsByWhatWasChosen) {
  const auto with = [](MeasuredLaunch launch, double rate) {
    launch.keys["init_learning_rate"] = rate;
    launch.defaults = {"init_learning_rate"};
    return launch;
  };
  const auto names_of = [](const std::vector<MeasuredLaunch>& launches) {
    const Matching matching =
        match_sets({result_set("a", launches), result_set("b", launches)}, {});
    return matching.points.front().settings;
  };
  const Json chosen = names_of({with(launch(1), 0.1), with(launch(1, 1, "bf16"), 0.01)});
  EXPECT_EQ(chosen.size(), 1U);
  EXPECT_TRUE(chosen.contains("precision"));
  const Json otherwise_alike = names_of({with(launch(1), 0.1), with(launch(1), 0.01)});
  EXPECT_TRUE(otherwise_alike.contains("init_learning_rate")) << "nothing else tells them apart";
}

TEST(MatchSets, RefusesSetsWithoutACommonPoint) {
  std::vector<ResultSet> sets{result_set("a", {launch(1), launch(1, 1, "bf16")}),
                              result_set("b", {launch(1), launch(1, 1, "bf16")})};
  sets[0].launches[0].keys["seed"] = 2;  // every value is in both sets, but crosswise
  sets[1].launches[1].keys["seed"] = 2;
  EXPECT_THAT(refusal(sets), HasSubstr("no point in common; the nearest differ in "));
  EXPECT_THAT(refusal({result_set("a", {launch(1, 1)}), result_set("b", {launch(1, 2)})}),
              HasSubstr("ranks (a: 1; b: 2)"));
}

TEST(MatchSets, DoesNotPoolWhatIsCompared) {
  const std::vector<ResultSet> sets{result_set("a", {launch(1), launch(1, 1, "bf16")}),
                                    result_set("b", {launch(1)})};
  EXPECT_THAT(refusal(sets, {"precision"}),
              AllOf(HasSubstr("fp32"), HasSubstr("bf16"), HasSubstr("--by precision")));
}

TEST(MatchSets, RefusesAnUnknownVariedKey) {
  const std::vector<ResultSet> sets{result_set("a", {launch(1)}), result_set("b", {launch(1)})};
  EXPECT_THAT(refusal(sets, {"precison"}), HasSubstr("did you mean precision?"));
}

TEST(MatchSets, AKeyOfALaterVersionIsAlikeAtItsDefault) {
  std::vector<ResultSet> sets{result_set("a", {launch(1)}), result_set("b", {launch(1)})};
  sets[0].launches[0].keys.erase("seed");
  EXPECT_EQ(match_sets(sets, {}).points.size(), 1U);
  sets[1].launches[0].defaults.clear();
  EXPECT_THAT(refusal(sets), HasSubstr("seed (a: not set; b: 1)"));
}

TEST(MatchSets, WhatARecordDoesNotTellIsNoted) {
  std::vector<ResultSet> sets{result_set("a", {launch(1, 2)}), result_set("b", {launch(1, 2)})};
  sets[0].launches[0].keys.erase("transport");
  sets[0].launches[0].unknown.insert("transport");
  const Matching matching = match_sets(sets, {});
  EXPECT_EQ(matching.points.size(), 1U);
  EXPECT_THAT(matching.notes, testing::ElementsAre(HasSubstr("transport")));
}

TEST(MatchSets, VariablesOfAPlanAreLookedUpInOtherRecords) {
  std::vector<ResultSet> sets{result_set("a", {launch(1)}), result_set("b", {launch(1)})};
  sets[0].launches[0].keys["env.NCCL_ALGO"] = "Ring";
  EXPECT_THAT(refusal(sets), HasSubstr("env.NCCL_ALGO (a: Ring; b: not set)"));
  sets[1].launches[0].environment["NCCL_ALGO"] = "Ring";
  EXPECT_EQ(match_sets(sets, {}).points.size(), 1U);
}

TEST(SplitBy, MakesASetOfEachValue) {
  const ResultSet set = result_set("s", {launch(1), launch(2, 1, "bf16"), launch(3)});
  const auto sets = split_by(set, {"precision"}, {"fp32", "bf16"});
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].label, "precision=fp32");
  EXPECT_EQ(sets[0].launches.size(), 2U);
  EXPECT_EQ(split_by(set, {"precision"}, {}).front().label, "precision=bf16");
  EXPECT_THROW(split_by(set, {"precision"}, {"fp32", "fp64"}), ConfigError);
  EXPECT_THROW(split_by(set, {"seed"}, {}), ConfigError);
}

/// Sets of three commits: each measured a day before the last one's, the newest first.
ResultSet three_commits() {
  ResultSet whole = test::result_set("all", {});
  for (int commit = 0; commit < 3; ++commit) {
    MeasuredLaunch launch = test::launch(100);
    launch.revision = std::string(1, static_cast<char>('c' - commit));
    launch.committed_at = "2026-11-0" + std::to_string(commit + 1);
    launch.started_at = "2026-12-0" + std::to_string(9 - commit);
    whole.launches.push_back(launch);
  }
  return whole;
}

std::vector<std::string> labels_of(const ResultSet& whole) {
  std::vector<std::string> labels;
  for (const ResultSet& part : split_by(whole, {"revision"}, {})) labels.push_back(part.label);
  return labels;
}

TEST(SplitBy, ACommitWithoutATimeReordersNoOthers) {
  ResultSet whole = three_commits();
  const std::vector<std::string> in_order{"revision=c", "revision=b", "revision=a"};
  EXPECT_EQ(labels_of(whole), in_order);
  whole.launches[1].committed_at.clear();
  EXPECT_EQ(labels_of(whole), in_order);
  // The row was measured as it was committed: the untold one stands where it was measured.
  for (int i = 0; i < 3; ++i)
    whole.launches[static_cast<std::size_t>(i)].started_at = "2026-12-0" + std::to_string(1 + i);
  EXPECT_EQ(labels_of(whole), in_order);
  for (MeasuredLaunch& launch : whole.launches) launch.committed_at.clear();
  EXPECT_EQ(labels_of(whole), in_order);
}

TEST(SplitBy, FailedLaunchesGoToTheirBuild) {
  ResultSet whole = three_commits();
  whole.failed = 3;
  whole.failed_of["b"] = {2, {"failed"}, "", ""};
  whole.failed_of["z"] = {1, {"timeout"}, "", ""};  // of a build that has no good one
  const std::vector<ResultSet> parts = split_by(whole, {"revision"}, {});
  EXPECT_EQ(parts.at(0).failed, 0u);
  EXPECT_EQ(parts.at(1).failed, 2u);
  EXPECT_EQ(parts.at(1).failed_of.at("b").statuses, std::set<std::string>{"failed"});
  EXPECT_EQ(parts.at(2).failed, 0u);
}

}  // namespace
}  // namespace scalemark::match_sets_test
