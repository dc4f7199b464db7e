// Batch search, input and checkpoints in a run record, against values computed by hand.
#include <gtest/gtest.h>

#include "result/run_metrics.hpp"
#include "result/support.hpp"

namespace scalemark::run_around_test {
namespace {

using test::make_facts;
using test::make_report;

Json record_of(const RunFacts& facts, const std::vector<RankReport>& reports) {
  return test::make_run_record(test::make_context(), facts, reports);
}

TEST(CheckpointPart, IsNullWithAReasonWithoutCheckpoints) {
  const Json record = record_of(make_facts(1), {make_report(0, {1, 1}, {0, 0})});
  EXPECT_TRUE(record["checkpoint"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("checkpoint"));
}

TEST(CheckpointPart, CostsAndProjections) {
  auto report = make_report(0, {1, 3, 1, 3}, {0, 0, 0, 0});  // 8 s, of which 4 s write
  report.samples.checkpoints = {2, 1'000'000'000, {1.5, 2.5}};
  const Json checkpoint = record_of(make_facts(1), {report})["checkpoint"];
  EXPECT_EQ(checkpoint["every"], 2);
  EXPECT_EQ(checkpoint["bytes"], 1'000'000'000);
  EXPECT_EQ(checkpoint["count"], 2);
  EXPECT_DOUBLE_EQ(checkpoint["write_seconds"]["mean"], 2);
  EXPECT_DOUBLE_EQ(checkpoint["write_seconds"]["max"], 2.5);
  EXPECT_DOUBLE_EQ(checkpoint["bytes_per_second"], 0.5e9);
  EXPECT_DOUBLE_EQ(checkpoint["step_overhead_fraction"], 0.5);
  // A step takes 1 s without checkpoints.
  const Json& rows = checkpoint["projected"];
  ASSERT_EQ(rows.size(), 16u);
  EXPECT_EQ(rows[0]["storage_bytes_per_second"], 0.5e9);
  EXPECT_EQ(rows[0]["interval_steps"], 10);
  EXPECT_DOUBLE_EQ(rows[0]["overhead_fraction"], 2. / 12);
  EXPECT_EQ(rows[4]["storage_bytes_per_second"], 0.2e9);
  EXPECT_DOUBLE_EQ(rows[4]["overhead_fraction"], 5. / 15);
  EXPECT_EQ(rows[15]["storage_bytes_per_second"], 8e9);
  EXPECT_EQ(rows[15]["interval_steps"], 10000);
  EXPECT_DOUBLE_EQ(rows[15]["overhead_fraction"], 0.125 / 10000.125);
}

TEST(CheckpointPart, OfSeveralWritersTheSlowestCountsAndRatesAddUp) {
  // node0: ranks 0 and 1, node1: rank 2. A file of 1 GB each; a checkpoint takes 2 s, then 4 s.
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 3; ++rank) reports.push_back(make_report(rank, {4, 4}, {0, 0}));
  reports[0].samples.checkpoints = {1, 1'000'000'000, {1, 1}};
  reports[1].samples.checkpoints = {1, 1'000'000'000, {2, 2}};
  reports[2].samples.checkpoints = {1, 1'000'000'000, {1, 4}};
  LoadedConfig loaded;
  RunConfig keys;
  keys.checkpoint_writers = CheckpointWriters::rank;
  keys.storage_gbit = 20;
  loaded.config = ResolvedConfig(keys);
  const auto of = [&](const LoadedConfig& config) {
    return test::make_run_record(test::make_context(config), make_facts(3), reports)["checkpoint"];
  };
  const Json checkpoint = of(loaded);
  EXPECT_EQ(checkpoint["writers"], "rank");
  EXPECT_EQ(checkpoint["files"], 3);
  EXPECT_EQ(checkpoint["bytes"], 1'000'000'000);
  EXPECT_EQ(checkpoint["total_bytes"], 3'000'000'000);
  EXPECT_DOUBLE_EQ(checkpoint["write_seconds"]["mean"], 3);
  EXPECT_DOUBLE_EQ(checkpoint["total_bytes_per_second"], 1e9);  // 6 GB in 6 s
  EXPECT_DOUBLE_EQ(checkpoint["bytes_per_second"], 1e9 / 3);
  EXPECT_DOUBLE_EQ(checkpoint["file_bytes_per_second"]["max"], 1e9);
  EXPECT_DOUBLE_EQ(checkpoint["file_bytes_per_second"]["min"], 0.4e9);
  ASSERT_EQ(checkpoint["nodes"].size(), 2u);
  EXPECT_EQ(checkpoint["nodes"][0],
            (Json{{"host", "node0"}, {"files", 2}, {"bytes_per_second", 1e9}}));
  EXPECT_EQ(checkpoint["nodes"][1]["bytes_per_second"], 0.4e9);
  EXPECT_EQ(checkpoint["projected"][0]["storage_bytes_per_second"], 1e9);
  // 8 s hold 2 steps of 1 s and 6 s of checkpoints. 20 Gbit/s take 3 GB in 1.2 s.
  EXPECT_DOUBLE_EQ(checkpoint["storage"]["seconds"], 1.2);
  EXPECT_EQ(checkpoint["storage"]["limited_by"], "file system");
  EXPECT_DOUBLE_EQ(checkpoint["storage"]["overhead_fraction"], 1.2 / 2.2);
  keys.storage_node_gbit = 10;  // node0's 2 GB take 1.6 s
  loaded.config = ResolvedConfig(keys);
  EXPECT_DOUBLE_EQ(of(loaded)["storage"]["seconds"], 1.6);
  EXPECT_EQ(of(loaded)["storage"]["limited_by"], "node");
}

TEST(CheckpointPart, OfShardsEveryRankWritesItsPart) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 2; ++rank) reports.push_back(make_report(rank, {4, 4}, {0, 0}));
  reports[0].samples.checkpoints = {1, 1'000'000'001, {1, 1}};
  reports[1].samples.checkpoints = {1, 600'000'000, {2, 2}};
  LoadedConfig loaded;
  RunConfig keys;
  keys.shard = Shard::gradients;
  keys.storage_gbit = 8;
  loaded.config = ResolvedConfig(keys);
  const Json checkpoint =
      test::make_run_record(test::make_context(loaded), make_facts(2), reports)["checkpoint"];
  EXPECT_EQ(checkpoint["writers"], "rank");
  EXPECT_EQ(checkpoint["files"], 2);
  EXPECT_EQ(checkpoint["total_bytes"], 1'600'000'001);
  EXPECT_EQ(checkpoint["bytes"], 800'000'000);
  EXPECT_DOUBLE_EQ(checkpoint["total_bytes_per_second"], 800'000'000.5);  // 2 s each
  EXPECT_DOUBLE_EQ(checkpoint["file_bytes_per_second"]["max"], 1'000'000'001);
  EXPECT_DOUBLE_EQ(checkpoint["file_bytes_per_second"]["min"], 0.3e9);
  EXPECT_DOUBLE_EQ(checkpoint["storage"]["seconds"], 1.600000001);
}

TEST(CheckpointPart, NoneWithinTheRun) {
  auto report = make_report(0, {1, 1}, {0, 0});
  report.samples.checkpoints = {10, 0, {}};
  const Json record = record_of(make_facts(1), {report});
  EXPECT_EQ(record["checkpoint"]["count"], 0);
  EXPECT_TRUE(record["checkpoint"]["write_seconds"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("checkpoint.write_seconds"));
}

TEST(PhasesPart, AreMeansOverStepsAndRanks) {
  auto a = make_report(0, {1, 1}, {0, 0}), b = make_report(1, {1, 1}, {0, 0});
  a.samples.phase_seconds = {0, 0.5, 1, 0.25, 0.25, 0, 0, 0};
  b.samples.phase_seconds = {0.25, 0.5, 1, 0, 0, 0, 0.125, 0.125};
  const Json phases = record_of(make_facts(2), {a, b})["phases"];
  EXPECT_EQ(phases["clock"], "host");
  const Json seconds = {{"input", 0.0625},         {"forward", 0.25},     {"backward", 0.5},
                        {"communication", 0.0625}, {"optimizer", 0.0625}, {"checkpoint", 0.},
                        {"agreement", 0.03125},    {"rest", 0.03125}};
  EXPECT_EQ(phases["seconds"], seconds);
  EXPECT_DOUBLE_EQ(phases["fractions"]["backward"], 0.5);
  EXPECT_DOUBLE_EQ(phases["fractions"]["agreement"], 0.03125);
}

TEST(PhasesPart, WhatC10dWaitsForOnAGpuIsNotKnown) {
  auto report = make_report(0, {1}, {0});
  report.samples.phase_seconds = {0, 0.25, 0.75, 0, 0, 0, 0, 0};
  RunFacts facts = make_facts(2);
  facts.device = "cuda";
  facts.reducer = "c10d";
  const Json record = record_of(facts, {report});
  EXPECT_EQ(record["phases"]["clock"], "events of the stream");
  EXPECT_TRUE(record["phases"]["seconds"]["communication"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("phases.fractions.communication"));
}

TEST(PhasesPart, AreNullWithoutAMeasuredRun) {
  const Json record = make_failed_record(test::make_context(), 2, {Status::failed, "lost"});
  EXPECT_TRUE(record["phases"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("phases"));
}

TEST(InputPart, IsPerStepAndTheMeanOverRanks) {
  auto a = make_report(0, {1, 1}, {0, 0}), b = make_report(1, {1, 1}, {0, 0});
  a.samples.input = {InputPlace::host, 64, 0.4, 0.2};
  b.samples.input = {InputPlace::host, 64, 0.8, 0.2};
  const Json input = record_of(make_facts(2), {a, b})["input"];
  EXPECT_EQ(input["place"], "host");
  EXPECT_EQ(input["bytes_per_step"], 64);
  EXPECT_DOUBLE_EQ(input["copy_seconds"], 0.3);
  EXPECT_DOUBLE_EQ(input["wait_seconds"], 0.1);
}

TEST(BatchSearchPart, SaysWhatWasTried) {
  RunFacts facts = make_facts(1);
  const auto reports = std::vector{make_report(0, {1, 1}, {0, 0})};
  EXPECT_TRUE(record_of(facts, reports)["batch_size_search"].is_null());
  facts.batch_search = {1, {{1, true, 0.5, 100}, {2, false, 0.1, 200}}, 1000, "memory"};
  const Json search = record_of(facts, reports)["batch_size_search"];
  EXPECT_EQ(search["requested"], "max");
  EXPECT_EQ(search["limit_bytes"], 1000);
  EXPECT_EQ(search["limited_by"], "memory");
  EXPECT_EQ(search["tried"][1],
            (Json{{"batch_size", 2}, {"fits", false}, {"seconds", 0.1}, {"peak_bytes", 200}}));
}

TEST(MemoryPart, IsOfTheLargestRank) {
  auto a = make_report(0, {1}, {0}), b = make_report(1, {1}, {0});
  a.weight_bytes = 10;
  b.weight_bytes = 20;
  a.optimizer_state_bytes = 40;
  b.batch_bytes = 80;
  const Json memory = record_of(make_facts(2), {a, b})["memory"];
  EXPECT_EQ(memory["weight_bytes"], 20);
  EXPECT_EQ(memory["optimizer_state_bytes"], 40);
  EXPECT_EQ(memory["batch_bytes"], 80);
}

}  // namespace
}  // namespace scalemark::run_around_test
