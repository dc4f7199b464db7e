// Which launches of a sweep make a curve, what it is called, and what is missing of it.
#include "analysis/scaling/swept_curves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "result/records.hpp"

namespace scalemark::swept_curves_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Made {
  std::vector<SweptRun> runs;

  SweptRun& add(int ranks, std::int64_t repeat, const std::map<std::string, Json>& same = {},
                const char* communicator = "auto") {
    SweptRun run;
    run.ranks = ranks;
    run.communicator = communicator;
    run.same = {
        {"model", "trivial"}, {"scaling", "weak"}, {"batch_size", 4}, {"build.revision", "a"}};
    run.entry.settings = {{"ranks", ranks}};
    run.entry.point = std::to_string(ranks) + communicator;
    for (const auto& [name, value] : same) {
      run.same[name] = value;
      run.entry.settings[name] = value;
      run.entry.point += value.dump();
    }
    run.entry.repeat = repeat;
    run.entry.revision = run.same["build.revision"];
    run.placed = {{"point", run.entry.point}, {"ranks_per_node", nullptr}};
    runs.push_back(run);
    return runs.back();
  }
  void pair(const std::map<std::string, Json>& same = {}, const char* communicator = "auto") {
    for (const int ranks : {1, 2})
      for (const int repeat : {1, 2}) add(ranks, repeat, same, communicator);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const SweptCurve& curve : swept_curves(runs).curves) all.push_back(curve.name);
    std::ranges::sort(all);
    return all;
  }
};

TEST(SweptCurves, LaunchesThatDifferInTheirRanksAreOneCurve) {
  Made made;
  made.pair();
  const SweptCurves swept = swept_curves(made.runs);
  ASSERT_EQ(swept.curves.size(), 1u);
  EXPECT_EQ(swept.curves[0].name, "");
  EXPECT_THAT(swept.curves[0].ranks(), ElementsAre(1, 2));
  EXPECT_EQ(swept.curves[0].runs.size(), 4u);
  EXPECT_EQ(swept.curves[0].settings, Json::object());
  EXPECT_THAT(swept.left_out, IsEmpty());
}

TEST(SweptCurves, LaunchesWithoutACollectiveBelongToTheCurveThatHasIt) {
  Made made;
  made.pair({{"leave_out", "none"}});
  for (const int repeat : {1, 2}) {
    made.add(2, repeat, {{"leave_out", "allgather"}}).left_out = LeaveOut::allgather;
    made.add(2, repeat, {{"leave_out", "reduce_scatter"}}).left_out = LeaveOut::reduce_scatter;
    made.add(2, repeat, {{"leave_out", "none"}}, "none");
  }
  const SweptCurves swept = swept_curves(made.runs);
  EXPECT_THAT(swept.left_out, IsEmpty());
  ASSERT_EQ(swept.curves.size(), 1u);
  EXPECT_EQ(swept.curves[0].runs.size(), 4u);
  EXPECT_EQ(swept.curves[0].baselines.size(), 6u);
}

TEST(SweptCurves, AreNamedByWhatTheyDifferByAndNoMore) {
  Made made;
  made.pair({{"model", "trivial"}, {"unit", "images/sec"}, {"precision", "fp32"}});
  made.pair({{"model", "trivial"}, {"unit", "images/sec"}, {"precision", "bf16"}});
  made.pair({{"model", "bert_tiny"}, {"unit", "sequences/sec"}, {"precision", "fp32"}});
  EXPECT_THAT(made.names(), ElementsAre("bert_tiny-fp32", "trivial-bf16", "trivial-fp32"));
}

TEST(SweptCurves, ANameIsFitForAFile) {
  Made made;
  made.pair({{"env.UCX_NET_DEVICES", "mlx5_0:1/x"}});
  made.pair({{"env.UCX_NET_DEVICES", nullptr}});
  EXPECT_THAT(made.names(), ElementsAre("UCX_NET_DEVICES=mlx5_0_1_x", "UCX_NET_DEVICES=not_set"));
}

TEST(SweptCurves, WeakAndStrongOtherBatchesAndOtherBuildsAreNeverMixed) {
  Made made;
  made.pair();
  made.pair({{"batch_size", 8}});
  made.pair({{"scaling", "strong"}, {"batch_size", nullptr}, {"global_batch_size", 8}});
  made.pair({{"build.revision", "b"}});
  const SweptCurves swept = swept_curves(made.runs);
  EXPECT_EQ(swept.curves.size(), 4u);
  for (const SweptCurve& curve : swept.curves)
    for (const SweptRun* run : curve.runs) EXPECT_EQ(run->same, curve.runs.front()->same);
}

TEST(SweptCurves, LaunchesWithoutCommunicationAreItsBaselines) {
  Made made;
  made.pair();
  made.pair({}, "none");
  const SweptCurves swept = swept_curves(made.runs);
  ASSERT_EQ(swept.curves.size(), 1u);
  EXPECT_EQ(swept.curves[0].runs.size(), 4u);
  EXPECT_EQ(swept.curves[0].baselines.size(), 2u) << "one rank has none";
}

TEST(SweptCurves, ABaselineServesEveryReducer) {
  Made made;
  made.pair({{"reducer", "scalemark"}});
  made.pair({{"reducer", "c10d"}});
  for (const int repeat : {1, 2}) made.add(2, repeat, {{"reducer", "scalemark"}}, "none");
  const SweptCurves swept = swept_curves(made.runs);
  EXPECT_THAT(made.names(), ElementsAre("c10d", "scalemark"));
  for (const SweptCurve& curve : swept.curves) EXPECT_EQ(curve.baselines.size(), 2u) << curve.name;
}

TEST(SweptCurves, OneRankServesWhateverCommunicatorItHad) {
  Made made;
  made.add(1, 1);
  made.add(2, 1, {}, "mpi");
  made.add(4, 1, {}, "mpi");
  ASSERT_EQ(swept_curves(made.runs).curves.size(), 1u);
  EXPECT_THAT(swept_curves(made.runs).curves[0].ranks(), ElementsAre(1, 2, 4));
}

TEST(SweptCurves, WithoutAnyCommunicatorTheyAreACurveThemselves) {
  Made made;
  made.pair({}, "none");
  ASSERT_EQ(swept_curves(made.runs).curves.size(), 1u);
  EXPECT_THAT(swept_curves(made.runs).curves[0].baselines, IsEmpty());
}

TEST(SweptCurves, PlacementMayFollowTheRanksButNotDifferAtOneCount) {
  Made made;
  made.add(1, 1).placed["ranks_per_node"] = 1;
  made.add(2, 1).placed["ranks_per_node"] = 2;
  EXPECT_EQ(swept_curves(made.runs).curves.size(), 1u);
  made.add(2, 1).placed["ranks_per_node"] = 1;
  made.runs.back().placed["point"] = "other";
  const SweptCurves split = swept_curves(made.runs);
  ASSERT_EQ(split.curves.size(), 1u) << "two ranks a node have no other rank count";
  EXPECT_EQ(split.curves[0].runs.back()->placed.at("ranks_per_node"), 1);
  ASSERT_EQ(split.left_out.size(), 1u);
  EXPECT_THAT(split.left_out[0], HasSubstr("launches of 2 ranks alone"));
}

TEST(SweptCurves, WhatNoSettingTellsApartIsRefused) {
  Made made;
  made.pair();
  made.add(2, 3).placed["point"] = "of a plan that was changed";
  const SweptCurves swept = swept_curves(made.runs);
  EXPECT_THAT(swept.curves, IsEmpty());
  EXPECT_THAT(swept.left_out, ElementsAre(HasSubstr("differ in something that no setting")));
}

/// The warnings of the curve that a record of one rank and a record of two make, where the second
/// ran on `host` and started at `time`.
std::vector<std::string> warnings_of_curve(const std::string& host, const std::string& time) {
  const std::filesystem::path files =
      std::filesystem::path(SCALEMARK_SOURCE_DIR) / "tests/record/files";
  std::vector<SweptRun> runs;
  for (const char* name : {"run_one_rank.json", "run_two_ranks.json"}) {
    Json record = read_record(files / name);
    const bool second = !runs.empty();
    for (Json& rank : record["ranks"]) rank["host"] = second ? host : "n0";
    record["started_at"] = second ? time : "2026-01-31T12:00:00Z";
    JournalEntry entry;
    entry.repeat = 1;
    runs.push_back(swept_run(entry, record, name, Resource::rank));
  }
  SweptCurve curve;
  for (const SweptRun& run : runs) curve.runs.push_back(&run);
  curve.settings = Json::object();
  return make_swept_record(curve, {}).warnings;
}

TEST(SweptCurves, WarnOfLaunchesOfOtherHostsAndDays) {
  const std::string hours_later = "2026-01-31T15:00:00Z", days_later = "2026-02-03T12:00:00Z";
  const auto alike = warnings_of_curve("n0", hours_later);
  EXPECT_THAT(alike, Not(Contains(HasSubstr("reads as scaling"))));
  EXPECT_THAT(warnings_of_curve("n1", hours_later),
              Contains(HasSubstr("launches ran on different hosts (n0, n1)")));
  EXPECT_THAT(warnings_of_curve("n0", days_later),
              Contains(HasSubstr("lie apart in time (2026-01-31T12:00:00Z to 2026-02-03")));
}

TEST(SweptCurves, TransportsAreNotMixedAtOneRankCount) {
  Made made;
  made.add(1, 1).achieved = {{"transport", "none"}};
  made.add(2, 1).achieved = {{"transport", "tcp"}};
  EXPECT_EQ(swept_curves(made.runs).curves.size(), 1u);
  made.add(2, 2).achieved = {{"transport", "shared memory"}};
  EXPECT_THAT(
      swept_curves(made.runs).left_out,
      ElementsAre(HasSubstr("launches of 2 ranks differ in transport (tcp; shared memory)")));
}

JournalEntry entry(const std::string& point, std::int64_t repeat, const std::string& status,
                   const Json& settings, const std::string& revision = "a") {
  JournalEntry made;
  made.point = point;
  made.revision = revision;
  made.repeat = repeat;
  made.status = status;
  made.reason = status == "ok" ? "" : "why";
  made.settings = settings;
  return made;
}

std::vector<std::string> words_of(const std::vector<MissingLaunches>& all) {
  std::vector<std::string> words;
  for (const MissingLaunches& one : all) words.push_back(one.words);
  return words;
}

TEST(MissingLaunches, AreWhatThePlanHasAndTheJournalHasNot) {
  const Json one = {{"ranks", 1}}, two = {{"ranks", 2}};
  const std::vector<JournalEntry> last{entry("p1", 1, "ok", one), entry("p1", 2, "ok", one),
                                       entry("p2", 1, "failed", two),
                                       entry("p2", 2, "interrupted", two)};
  const PlannedLaunches planned{"a", 3, {{"p1", one}, {"p2", two}, {"p4", {{"ranks", 4}}}}};
  EXPECT_THAT(words_of(missing_launches(last, planned)),
              ElementsAre("ranks=1: repeat 3 not measured yet",
                          "ranks=2: repeat 1 failed (why), repeats 2, 3 not measured yet",
                          "ranks=4: repeats 1, 2, 3 not measured yet"));
}

TEST(MissingLaunches, WithoutAPlanAreWhatOtherPointsOfTheBuildHave) {
  const Json one = {{"ranks", 1}}, two = {{"ranks", 2}};
  const std::vector<JournalEntry> last{entry("p1", 1, "ok", one), entry("p1", 2, "ok", one),
                                       entry("p2", 2, "ok", two), entry("p1", 1, "ok", one, "b")};
  EXPECT_THAT(words_of(missing_launches(last, std::nullopt)),
              ElementsAre("ranks=2: repeat 1 not measured yet"));
}

TEST(MissingLaunches, BelongToTheCurveOfTheirSettingsAndBuild) {
  Made made;
  made.pair({{"precision", "fp32"}});
  made.pair({{"precision", "bf16"}});
  const SweptCurves swept = swept_curves(made.runs);
  const MissingLaunches missing{{{"ranks", 4}, {"precision", "bf16"}}, "a", ""};
  for (const SweptCurve& curve : swept.curves) {
    EXPECT_EQ(belongs_to(missing, curve), curve.name == "bf16");
    EXPECT_FALSE(belongs_to({missing.settings, "b", ""}, curve));
  }
}

}  // namespace
}  // namespace scalemark::swept_curves_test
