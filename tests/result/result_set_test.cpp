// Records, folders and sweeps as sets of launches; what is left out, and what is refused.
#include "result/result_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/scaling/scaling.hpp"
#include "error.hpp"
#include "record/read.hpp"
#include "result/envelope.hpp"
#include "result/inference_record.hpp"
#include "result/support.hpp"

namespace scalemark::result_set_test {
namespace {
using test::make_facts;
using test::make_report;
using test::Tree;
using testing::ElementsAre;
using testing::HasSubstr;

Json run_record(int ranks = 2, double step = 0.5) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < ranks; ++rank) {
    reports.push_back(make_report(rank, std::vector<double>(4, step), std::vector<double>(4, 0)));
    reports.back().threads = 2;
  }
  return test::make_run_record({{}, system_info(), {{"NCCL_ALGO", "Ring"}}}, make_facts(ranks),
                               reports);
}

Json failed_record() {
  return make_failed_record(test::make_context(), 2, {Status::failed, "why"});
}

std::string refusal(const std::string& path) {
  try {
    read_result_set("x", path);
  } catch (const ConfigError& error) {
    return std::string("2 ") + error.what();
  } catch (const ResultError& error) {
    return std::string("6 ") + error.what();
  }
  ADD_FAILURE() << path << " was not refused";
  return "";
}

TEST(ResultSet, OfOneRunHasItsWorkAndItsKeys) {
  Tree tree;
  const Json record = run_record();
  tree.file("r.json", record_text(record));
  const ResultSet set = read_labelled_set((tree.root() / "r.json").string());
  EXPECT_EQ(set.label, "r");
  ASSERT_EQ(set.launches.size(), 1U);
  const MeasuredLaunch& launch = set.launches[0];
  ASSERT_EQ(launch.repeats.size(), 1U);
  EXPECT_NEAR(launch.repeats[0].seconds, 2, 1e-12);
  EXPECT_NEAR(launch.repeats[0].units, 4 * 32, 1e-9);  // 4 steps of 2 ranks x 16 images
  EXPECT_EQ(launch.ranks, 2);
  EXPECT_EQ(launch.keys.at("batch_size"), 16);
  EXPECT_EQ(launch.keys.at("device"), "cpu");  // not "auto"
  EXPECT_EQ(launch.keys.at("communicator"), "mpi");
  EXPECT_EQ(launch.keys.at("transport"), "vader");
  EXPECT_EQ(launch.keys.at("num_intra_threads"), 2);
  EXPECT_EQ(launch.keys.at("hosts"), 1);
  EXPECT_EQ(launch.environment.at("NCCL_ALGO"), "Ring");
  for (const char* name : {"output", "repeats", "label", "global_batch_size", "hostfile"})
    EXPECT_FALSE(launch.keys.contains(name)) << name;
  EXPECT_TRUE(launch.defaults.contains("seed"));
}

TEST(ResultSet, KnowsWhichLossesDiverged) {
  Tree tree;
  Json record = run_record();
  tree.file("falls.json", record_text(record));
  record["loss"]["diverged"] = true;
  tree.file("rises.json", record_text(record));
  const auto diverged = [&](const char* name) {
    return read_result_set("x", (tree.root() / name).string()).launches.at(0).diverged;
  };
  EXPECT_FALSE(diverged("falls.json"));
  EXPECT_TRUE(diverged("rises.json"));
}

TEST(ResultSet, OfAnInferenceHasItsLatencies) {
  Tree tree;
  LoadedConfig config;
  config.command = Command::infer;
  InferenceFacts facts;
  static_cast<RunFacts&>(facts) = make_facts(1);
  facts.fused = "on";
  const auto report = make_report(0, std::vector<double>(100, 0.25), std::vector<double>(100, 0));
  tree.file(
      "i.json",
      record_text(measured_json(make_inference(test::make_context(config), facts, {report}))));
  const ResultSet set = read_result_set("x", (tree.root() / "i.json").string());
  EXPECT_DOUBLE_EQ(set.launches[0].metrics.at("latency_p99"), 0.25);
  EXPECT_EQ(set.launches[0].keys.at("kind"), "inference");
  EXPECT_EQ(set.launches[0].keys.at("kernels"), "scalemark");
  EXPECT_FALSE(set.launches[0].keys.contains("fused"));
}

TEST(ResultSet, ReadsTheFormerNameOfKernelsInOlderRecords) {
  Tree tree;
  Json record = run_record(1, 0.5);
  record.erase("kernels");
  record["schema_revision"] = 8;
  record["config"].erase("kernels");
  record["config"]["fused"] = {{"value", "off"}, {"origin", "command_line"}};
  tree.file("r.json", record_text(record));
  const auto set = read_result_set("x", (tree.root() / "r.json").string());
  EXPECT_EQ(set.launches[0].keys.at("kernels"), "torch");
  EXPECT_FALSE(set.launches[0].keys.contains("fused"));
  EXPECT_FALSE(set.launches[0].defaults.contains("kernels"));
}

/// A curve of one and two ranks with two rounds each, its run records in `folder`/c.runs.
Json curve(Tree& tree, const std::string& folder) {
  std::vector<PointRuns> points;
  for (const int ranks : {1, 2}) {
    PointRuns point{ranks, {}, {}};
    for (int round = 1; round <= 2; ++round) {
      const Json run = run_record(ranks, 0.5 * round);
      const std::string path = "c.runs/" + std::to_string(ranks) + std::to_string(round) + ".json";
      tree.file(folder + "/" + path, record_text(run));
      point.repeats.push_back(point_repeat(record_from<RunResult>(run), path, false));
    }
    points.push_back(point);
  }
  LoadedConfig config;
  config.config.batch_size = 16;
  const Json record =
      curve_json(make_scaling_record(test::make_context(config), 2, points, {}, {}));
  tree.file(folder + "/c.json", record_text(record));
  return record;
}

TEST(ResultSet, OfACurveHasALaunchAPointWithItsRounds) {
  Tree tree;
  curve(tree, "f");
  for (const char* path : {"f/c.json", "f"}) {  // in the folder its runs are not counted again
    const ResultSet set = read_result_set("x", (tree.root() / path).string());
    ASSERT_EQ(set.launches.size(), 2U) << path;
    EXPECT_EQ(set.launches[1].ranks, 2);
    ASSERT_EQ(set.launches[1].repeats.size(), 2U);
    EXPECT_NEAR(set.launches[1].repeats[1].seconds, 4, 1e-9);
    EXPECT_EQ(set.launches[1].keys.at("transport"), "vader");  // from the run beside it
    EXPECT_EQ(set.launches[1].keys.at("batch_size"), 16);
  }
  std::filesystem::remove_all(tree.root() / "f/c.runs");
  const ResultSet alone = read_result_set("x", (tree.root() / "f/c.json").string());
  EXPECT_FALSE(alone.launches[1].keys.contains("transport"));
  EXPECT_TRUE(alone.launches[1].unknown.contains("num_intra_threads"));
}

TEST(ResultSet, OfACurveOfLaunchesHasThoseOfItsSweep) {
  Tree tree;
  Json record = curve(tree, "f");
  record["repeat_unit"] = "launch";
  record["settings"] = {{"env.NCCL_ALGO", "Ring"}, {"model", "resnet50"}};
  tree.file("f/c.json", record_text(record));
  const ResultSet set = read_result_set("x", (tree.root() / "f/c.json").string());
  ASSERT_EQ(set.launches.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const MeasuredLaunch& launch = set.launches[i];
    const Json& repeat = record["points"][i / 2]["repeats"][i % 2];
    EXPECT_EQ(launch.id, repeat["run"]);  // by which a copy is known
    EXPECT_EQ(launch.sweep, record["id"]);
    EXPECT_EQ(launch.repeat, static_cast<std::int64_t>(i % 2) + 1);
    ASSERT_EQ(launch.repeats.size(), 1U);
    EXPECT_DOUBLE_EQ(launch.repeats[0].rate(), repeat["throughput"].get<double>());
    EXPECT_EQ(launch.keys.at("env.NCCL_ALGO"), "Ring");
    EXPECT_TRUE(launch.keys.at("binding").is_null());
  }
}

TEST(ResultSet, OfACurveOfLaunchesHasTheirTimes) {
  Tree tree;
  Json record = curve(tree, "f");
  record["repeat_unit"] = "launch";
  record["created_at"] = "2026-11-20T23:00:00.000Z";
  record["points"][0]["repeats"][0]["created_at"] = "2026-11-20T12:00:00.000Z";
  record["points"][0]["repeats"][1]["created_at"] = nullptr;
  record["unavailable"]["points.repeats.created_at"] = "it was not told";
  tree.file("c.json", record_text(record));
  const ResultSet set = read_result_set("x", (tree.root() / "c.json").string());
  EXPECT_EQ(set.launches.at(0).started_at, "2026-11-20T12:00:00.000Z");
  EXPECT_EQ(set.launches.at(1).started_at, "2026-11-20T23:00:00.000Z");
  // Those that a curve writes are the ones of its runs.
  const Json run = read_record(tree.root() / "f/c.runs/11.json");
  EXPECT_EQ(point_repeat(record_from<RunResult>(run), "", false).created_at,
            run["created_at"].get<std::string>());
}

TEST(ResultSet, TellsBuildTypeAndPreflight) {
  Tree tree;
  Json record = run_record();
  record["build"]["build_type"] = "Debug";
  record["preflight"] = {{"id", "00000000-0000-4000-8000-000000000001"},
                         {"created_at", "2026-11-10T12:00:00Z"},
                         {"status", "ok"},
                         {"verdict", "pass"},
                         {"hosts_not_covered", Json::array()}};
  tree.file("r.json", record_text(record));
  const MeasuredLaunch launch =
      read_result_set("x", (tree.root() / "r.json").string()).launches.at(0);
  EXPECT_EQ(launch.keys.at("build_type"), "Debug");
  EXPECT_EQ(launch.preflight_at, "2026-11-10T12:00:00Z");
}

/// A launch of its own id whose loop took these seconds.
MeasuredLaunch that_took(double seconds, int id) {
  MeasuredLaunch launch;
  launch.id = launch.path = std::to_string(id);
  launch.host = "n0";
  launch.repeats = {{1000, seconds}};
  return launch;
}

std::string refused_copy(std::vector<ResultSet> sets) {
  try {
    count_copies_once(sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Copies, OfOneSetAreCountedOnce) {
  std::vector<ResultSet> sets(1);
  sets[0].launches = {that_took(12.3456789012, 1), that_took(12.3456789012, 2),
                      that_took(12.3456789013, 3), that_took(12.3456789012, 4)};
  count_copies_once(sets);
  ASSERT_EQ(sets[0].launches.size(), 2U);
  EXPECT_EQ(sets[0].launches[1].id, "3");
  EXPECT_EQ(sets[0].copies, 2U);
  EXPECT_THAT(sets[0].left_out, ElementsAre(HasSubstr("2 launches that tell what another one")));
}

TEST(Copies, OfTwoSetsAreRefused) {
  std::vector<ResultSet> sets(2);
  sets[0] = {"base", "b", {that_took(12.3456789012, 1)}, {}};
  sets[1] = {"new", "n", {that_took(12.5, 2), that_took(12.3456789012, 3)}, {}};
  EXPECT_THAT(refused_copy(sets),
              HasSubstr("1 (base) and 3 (new) tell the same to the last digit"));
  sets[1].launches[1].host = "n1";
  EXPECT_EQ(refused_copy(sets), "");
}

/// Two launches may well take 12.5 s each, where time is told in so few digits.
TEST(Copies, AreNotToldByFewDigits) {
  std::vector<ResultSet> sets(2);
  sets[0] = {"base", "b", {that_took(12.5, 1), that_took(12.5, 2)}, {}};
  sets[1] = {"new", "n", {that_took(12.5, 3)}, {}};
  EXPECT_EQ(refused_copy(sets), "");
  count_copies_once(sets);
  EXPECT_EQ(sets[0].launches.size(), 2U);
}

/// A journal line and its record.
void sweep_launch(Tree& tree, std::string& journal, int repeat, const Json& record,
                  const std::string& status) {
  const std::string name = "runs/p-" + std::to_string(repeat) + ".json";
  if (!record.is_null()) tree.file("s/" + name, record_text(record));
  const Json line = {{"schema_version", 1},
                     {"kind", "journal_entry"},
                     {"point", "p"},
                     {"config_hash", "c"},
                     {"revision", "r"},
                     {"repeat", repeat},
                     {"status", status},
                     {"exit_code", 0},
                     {"reason", ""},
                     {"record", record.is_null() ? "" : name},
                     {"seconds", 1.0},
                     {"started_at", ""},
                     {"settings", {{"cpus_per_rank", 1}, {"env.NCCL_ALGO", nullptr}}}};
  journal += line.dump() + "\n";
}

TEST(ResultSet, OfASweepFollowsItsJournal) {
  Tree tree;
  std::string journal;
  sweep_launch(tree, journal, 1, nullptr, "failed");
  sweep_launch(tree, journal, 2, run_record(2, 0.5), "ok");
  sweep_launch(tree, journal, 1, run_record(2, 0.25), "ok");  // measured again
  sweep_launch(tree, journal, 3, nullptr, "timeout");
  tree.file("s/journal.jsonl", journal + "{\"torn");
  const ResultSet set = read_labelled_set((tree.root() / "s").string() + "/");
  EXPECT_EQ(set.label, "s");
  ASSERT_EQ(set.launches.size(), 2U);
  EXPECT_EQ(set.launches[0].repeat, 2);
  EXPECT_EQ(set.launches[1].repeat, 1);
  EXPECT_EQ(set.launches[0].sweep, std::filesystem::canonical(tree.root() / "s").string());
  EXPECT_EQ(set.launches[0].keys.at("cpus_per_rank"), 1);
  EXPECT_TRUE(set.launches[0].keys.at("ranks_per_node").is_null());
  EXPECT_TRUE(set.launches[0].keys.at("env.NCCL_ALGO").is_null());
  EXPECT_THAT(set.left_out, ElementsAre("1 record with status failed, before it was repeated",
                                        "1 record with status timeout"));
  EXPECT_EQ(set.failed, 2U);
  std::filesystem::remove(tree.root() / "s/runs/p-2.json");
  EXPECT_THAT(refusal((tree.root() / "s").string()), HasSubstr("6 "));
  tree.file("s/journal.jsonl", "no journal\n");
  EXPECT_THAT(refusal((tree.root() / "s").string()), HasSubstr("line 1"));
}

TEST(ResultSet, LeavesOutWhatHasNoThroughput) {
  Tree tree;
  tree.file("f/a.json", record_text(run_record()));
  tree.file("f/b.json", record_text(failed_record()));
  tree.file("f/c.json", record_text(envelope("preflight", Status::ok)));
  tree.file("f/deep/d.json", record_text(run_record()));
  tree.file("f/speed.json", R"({"kind": "speed", "rows": []})");  // of lab/speed
  tree.file("f/.hidden.json", "no record");
  tree.file("f/planned.json", "{}");
  tree.file("f/weak.plan.json", "{}");
  tree.file("f/notes.txt", "no record");
  const ResultSet set = read_result_set("x", (tree.root() / "f").string());
  EXPECT_EQ(set.launches.size(), 2U);
  EXPECT_THAT(set.left_out, ElementsAre("1 record of kind preflight", "1 record of kind speed",
                                        "1 record with status failed"));
}

TEST(ResultSet, RefusesWhatItCannotRead) {
  Tree tree;
  const std::string root = tree.root().string();
  EXPECT_THAT(refusal(root + "/absent"), HasSubstr("2 "));
  tree.file("p.json", record_text(envelope("preflight", Status::ok)));
  EXPECT_THAT(refusal(root + "/p.json"), HasSubstr("2 "));
  tree.file("failed.json", record_text(failed_record()));
  EXPECT_THAT(refusal(root + "/failed.json"), HasSubstr("why"));
  std::filesystem::create_directory(tree.root() / "empty");
  EXPECT_THAT(refusal(root + "/empty"), HasSubstr("2 "));
  Json old = run_record(), torn = run_record(), still = run_record();
  old["schema_version"] = 0;
  tree.file("f/old.json", record_text(old));
  EXPECT_THAT(refusal(root + "/f"), testing::AllOf(HasSubstr("6 "), HasSubstr("older")));
  tree.file("f/old.json", R"({"kind": "another", "rows": []})");
  EXPECT_THAT(refusal(root + "/f"), HasSubstr("6 "));
  EXPECT_THAT(refusal(root + "/f/old.json"), HasSubstr("6 "));
  torn.erase("throughput");
  tree.file("torn.json", record_text(torn));
  EXPECT_THAT(refusal(root + "/torn.json"), HasSubstr("6 "));
  still["wall_seconds"] = 0;
  tree.file("still.json", record_text(still));
  EXPECT_THAT(refusal(root + "/still.json"), HasSubstr("6 "));
}

TEST(ResultSet, ALabelComesBeforeTheFirstEqualsSign) {
  Tree tree;
  tree.file("a=b.json", record_text(run_record()));
  const std::string path = (tree.root() / "a=b.json").string();
  EXPECT_EQ(read_labelled_set(path).label, "a=b");
  EXPECT_EQ(read_labelled_set("new=" + path).label, "new");
}

}  // namespace
}  // namespace scalemark::result_set_test
