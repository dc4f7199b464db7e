// Baselines: what they keep comes back, and what was changed by hand is refused.
#include "result/baseline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/text.hpp"
#include "error.hpp"
#include "platform/tree.hpp"

namespace scalemark::baseline_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MeasuredLaunch launch(double rate, const std::string& cpu = "one") {
  MeasuredLaunch made;
  made.id = "00000000-0000-4000-8000-000000000000";
  made.started_at = "2026-01-01T00:00:00.000Z";
  made.revision = "abc";
  made.host = "n0";
  made.unit = "images/sec";
  made.ranks = 2;
  made.repeats = {{10 * rate, 10}};
  made.metrics = {{"latency_p50", 0.1}};
  made.keys = {{"model", "smallnet"},
               {"ranks", 2},
               {"global_batch_size", nullptr},
               {"build_type", "Release"}};
  made.defaults = {"model"};
  made.unknown = {"transport"};
  made.environment = {{"NCCL_ALGO", "Ring"}};
  made.machine = {{"cpu_model", cpu}, {"gpus", Json::array({"H100"})}};
  made.sweep = "/sweep";
  made.repeat = 3;
  return made;
}

ResultSet set_of(const std::string& label, std::vector<MeasuredLaunch> launches) {
  return {label, label, std::move(launches), {}};
}

TEST(Baseline, WhatItKeepsComesBack) {
  const Json written = make_baseline_record(set_of("main", {launch(0.1), launch(12.3)}));
  const Json record = Json::parse(record_text(written));
  const auto launches = launches_of_baseline(record, "b.json");
  ASSERT_EQ(launches.size(), 2U);
  const MeasuredLaunch expected = launch(12.3), &found = launches[1];
  EXPECT_EQ(found.repeats[0].units, expected.repeats[0].units);
  EXPECT_EQ(found.keys, expected.keys);
  EXPECT_EQ(found.metrics, expected.metrics);
  EXPECT_EQ(found.defaults, expected.defaults);
  EXPECT_EQ(found.unknown, expected.unknown);
  EXPECT_EQ(found.environment, expected.environment);
  EXPECT_EQ(found.machine, expected.machine);
  EXPECT_EQ(found.revision, "abc");
  EXPECT_EQ(found.repeat, 3);
  EXPECT_EQ(found.sweep, "b.json");
}

TEST(Baseline, KeepsTheWarningsOfItsLaunches) {
  test::Tree tree;
  const Json record =
      make_baseline_record(set_of("main", {launch(1)}), {}, {"1 of 1 launches was disturbed"});
  tree.file("b.json", record_text(record));
  EXPECT_THAT(read_result_set("base", (tree.root() / "b.json").string()).warnings,
              ElementsAre("1 of 1 launches was disturbed"));
}

TEST(Baseline, OneFromBeforeTheKeyKernelsIsReadAsIfItHadIt) {
  const auto read = [](const char* fused) {
    MeasuredLaunch older = launch(1);
    older.keys["fused"] = fused;
    older.defaults = {"model", "fused"};
    const Json record = make_baseline_record(set_of("main", {older}));
    return launches_of_baseline(record, "b.json").front();
  };
  EXPECT_EQ(read("off").keys.at("kernels"), "torch");
  EXPECT_FALSE(read("off").keys.contains("fused"));
  EXPECT_EQ(read("on").keys.at("kernels"), "scalemark");
  EXPECT_EQ(read("on").defaults, (std::set<std::string>{"kernels", "model"}));
  EXPECT_EQ(read("folded").keys.at("kernels"), "scalemark");
  EXPECT_EQ(read("folded").keys.at("fused"), "folded");
}

TEST(Baseline, TheChecksumCoversContentAndNotItsForm) {
  Json record = make_baseline_record(set_of("main", {launch(1)}));
  const Json sorted = Json::parse(nlohmann::json::parse(record.dump()).dump(8));
  EXPECT_EQ(baseline_reference(sorted, "b").checksum, record["checksum"]);
  for (const char* key : {"label", "revision", "created_at"}) {
    Json changed = record;
    changed[key] = "x";
    EXPECT_THROW(baseline_reference(changed, "b"), ResultError) << key;
  }
  record.erase("checksum");
  EXPECT_THROW(launches_of_baseline(record, "b"), ResultError);
}

TEST(Baseline, OneFromBeforeAKeyKeepsItsChecksum) {
  Json record = make_baseline_record(set_of("main", {launch(1)}));
  for (const char* key : {"schema_revision", "warnings", "checksum"}) record.erase(key);
  record["checksum"] = sha256_hex(nlohmann::json::parse(record.dump()).dump());
  test::Tree tree;
  tree.file("b.json", record_text(record));
  const Json read = read_record(tree.root() / "b.json");
  EXPECT_EQ(read, record);
  EXPECT_EQ(launches_of_baseline(read, "b.json").size(), 1U);
}

TEST(Baseline, IsOfOneBuildAndOneMachine) {
  MeasuredLaunch other = launch(1);
  other.revision = "def";
  EXPECT_THROW(make_baseline_record(set_of("a", {launch(1), other})), ConfigError);
  EXPECT_THROW(make_baseline_record(set_of("a", {launch(1), launch(1, "two")})), ConfigError);
}

TEST(Baseline, MachinesThatDifferAreNamed) {
  const ResultSet a = set_of("a", {launch(1)}), b = set_of("b", {launch(1, "two")});
  EXPECT_THAT(machine_differences(a, b, kHardwareKeys), ElementsAre("cpu_model (a: one; b: two)"));
  EXPECT_TRUE(machine_differences(a, a, kHardwareKeys).empty());
  ResultSet silent = b;
  silent.launches[0].machine = nullptr;
  EXPECT_TRUE(machine_differences(a, silent, kHardwareKeys).empty());
}

}  // namespace
}  // namespace scalemark::baseline_test
