// Cumulative rates, overlap and ratios of made launches, and the record against its schema.
#include "analysis/instances/instances.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "record/write.hpp"

namespace scalemark::instances_test {
namespace {

MeasuredInstance result(std::size_t slot, double units, Window window, double latency = 0.5) {
  MeasuredInstance made;
  made.slot = slot;
  made.run_id = "11111111-1111-4111-8111-111111111111";
  made.run_path = "i.runs/a.json";
  made.units = units;
  made.throughput = units / (window.end - window.start);
  made.latency.assign(100, latency);
  made.window = window;
  return made;
}

InstanceLaunch launch(std::int64_t repeat, std::vector<MeasuredInstance> results) {
  InstanceLaunch made;
  made.repeat = repeat;
  made.instances = std::move(results);
  return made;
}

InstancesPlan plan(std::int64_t repeats = 2) {
  InstancesPlan made;
  made.slots = {Slot{{SlotPlace{SlotPlace::Kind::cpu, {0}, {0}}}},
                Slot{{SlotPlace{SlotPlace::Kind::mig, {1}, {0}, "MIG-1", "1g"}}}};
  made.instances = {1, 2};
  made.repeats = repeats;
  made.own_config = {{"job", {"run", "default"}}};
  return made;
}

/// Slot 0 alone 10 and 30 units a second, slot 1 alone 40; together 10 and 20, windows of 10 s that
/// begin one second apart.
std::vector<InstanceLaunch> launches() {
  return {launch(1, {result(0, 100, {0, 10})}),
          launch(1, {result(1, 400, {0, 10}, 0.25)}),
          launch(1, {result(0, 100, {5, 15}, 1), result(1, 200, {6, 16}, 0.5)}),
          launch(2, {result(0, 100, {100, 110}, 1), result(1, 200, {100, 110}, 0.5)}),
          launch(2, {result(0, 300, {0, 10})}),
          launch(2, {result(1, 400, {0, 10}, 0.25)})};
}

Json record(const InstancesPlan& asked, const std::vector<InstanceLaunch>& measured,
            Status status = Status::ok, const std::string& reason = "") {
  return record_json(
      make_instances_record({asked.config, system_info(), {}}, asked, measured, {status, reason}));
}

void expect_valid(const Json& record, const std::string& name) {
  const auto folder = std::filesystem::path(SCALEMARK_BINARY_DIR) / "scaling_records";
  std::filesystem::create_directories(folder);
  const auto path = folder / ("instances-" + name + ".json");
  std::ofstream(path) << record.dump(2);
  const std::string root = SCALEMARK_SOURCE_DIR;
  const std::string command = "'" + root + "/.venv/bin/python' '" + root +
                              "/tests/result/validate_records.py' '" + path.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << path;
}

TEST(LaunchFigures, OverlapIsTheCommonPartOfTheSpan) {
  const auto overlap = [](Window a, Window b) {
    return launch_figures({result(0, 1, a), result(1, 1, b)}).overlap;
  };
  EXPECT_DOUBLE_EQ(overlap({0, 10}, {0, 10}), 1);
  EXPECT_DOUBLE_EQ(overlap({0, 10}, {2, 10}), 0.8);
  EXPECT_DOUBLE_EQ(overlap({0, 4}, {2, 8}), 0.25);
  EXPECT_DOUBLE_EQ(overlap({0, 4}, {4, 8}), 0);
  EXPECT_DOUBLE_EQ(overlap({0, 4}, {6, 8}), 0);
  EXPECT_DOUBLE_EQ(launch_figures({result(0, 1, {3, 5})}).overlap, 1);
}

TEST(LaunchFigures, CumulativeRateIsOverTheSpan) {
  const auto figures = launch_figures({result(0, 100, {0, 10}), result(1, 200, {10, 30})});
  EXPECT_DOUBLE_EQ(figures.throughput, 10);
  EXPECT_DOUBLE_EQ(figures.sum_of_rates, 20);
}

TEST(MeasuredInstance, HasTheUnitsOfItsOwnWindow) {
  record::Measured run;
  run.id = "x";
  run.throughput.emplace().mean = 8;
  run.wall_seconds = 2.5;
  const MeasuredInstance trained = measured_instance(run, {0.5, 0.25}, 3, {1, 2});
  EXPECT_EQ(trained.run_id, "x");
  EXPECT_EQ(trained.slot, 3u);
  EXPECT_DOUBLE_EQ(trained.units, 20);
  EXPECT_EQ(trained.latency, (std::vector{0.5, 0.25}));
}

TEST(SlotSets, EverySlotAloneThenThePoints) {
  InstancesPlan three = plan();
  three.slots.resize(3);
  three.instances = {1, 3};
  EXPECT_EQ(slot_sets(three), (std::vector<std::vector<std::size_t>>{{0}, {1}, {2}, {0, 1, 2}}));
}

TEST(InstancesRecord, OfACompleteMeasurement) {
  const Json r = record(plan(), launches());
  EXPECT_DOUBLE_EQ(r["alone"][0]["throughput"], 20);
  EXPECT_DOUBLE_EQ(r["alone"][1]["throughput"], 40);
  const Json& both = r["points"][1];
  EXPECT_DOUBLE_EQ(both["cumulative"]["mean"], (300. / 11 + 30) / 2);
  EXPECT_DOUBLE_EQ(both["cumulative"]["sum_of_rates"], 30);
  EXPECT_DOUBLE_EQ(both["speedup"], (300. / 11 + 30) / 2 / 20);
  EXPECT_DOUBLE_EQ(both["efficiency"], 0.5);
  EXPECT_DOUBLE_EQ(both["overlap"], 9. / 11) << "the least of the repeats";
  EXPECT_EQ(both["overlaps_enough"], false);
  ASSERT_EQ(r["warnings"].size(), 1u);
  EXPECT_THAT(r["warnings"][0].get<std::string>(),
              testing::StartsWith("2 instances: the measured windows overlap by 0.818 only"));
  const Json& second = both["per_instance"][1];
  EXPECT_DOUBLE_EQ(second["ratio"], 0.5);
  EXPECT_DOUBLE_EQ(second["latency_seconds"]["p99"], 0.5);
  EXPECT_DOUBLE_EQ(second["alone_latency_seconds"]["p50"], 0.25);
  EXPECT_EQ(both["repeats"][0]["instances"][1]["window_seconds"], (Json{1.0, 11.0}));
  EXPECT_EQ(r["points"][0]["speedup"], 1.0);
  EXPECT_EQ(r["slots"][1]["gpu_uuid"], "MIG-1");
  EXPECT_EQ(r["ranks_per_instance"], 1);
  EXPECT_EQ(r["config"]["job"], (Json{{"value", "run"}, {"origin", "default"}}));
  expect_valid(r, "complete");
}

TEST(InstancesRecord, OfJobsOfSeveralRanksOnSeveralHosts) {
  InstancesPlan asked = plan();
  asked.ranks = 2;
  asked.slots[0].places = {SlotPlace{SlotPlace::Kind::cpu, {0, 1}, {0}},
                           SlotPlace{SlotPlace::Kind::cpu, {3}, {0}}};
  SlotPlace far{SlotPlace::Kind::gpu, {1}, {}, "GPU-1"};
  far.host = "n1";
  asked.slots[1].places[0].host = "n0";
  asked.slots[1].places.push_back(far);
  const Json r = record(asked, launches());
  EXPECT_EQ(r["ranks_per_instance"], 2);
  EXPECT_EQ(r["slots"][0]["cpus"], "0-1,3");
  EXPECT_EQ(r["slots"][0]["places"][1]["cpus"], "3");
  EXPECT_EQ(r["slots"][0]["places"][0]["host"], host_name());
  EXPECT_TRUE(r["slots"][1]["cpus"].is_null()) << "CPU 1 of two hosts";
  EXPECT_EQ(r["slots"][1]["places"][1]["host"], "n1");
  EXPECT_EQ(r["slots"][1]["places"][1]["gpu_uuid"], "GPU-1");
  EXPECT_NE(instances_hash(asked), instances_hash(plan()));
  expect_valid(r, "several-ranks");
}

TEST(InstancesRecord, OwnKeysStandInThePlaceOfTheJobs) {
  InstancesPlan asked = plan();
  const Json before = record(asked, launches());
  asked.own_config.emplace_back("num_batches", record::Setting{7, "command_line"});
  const Json r = record(asked, launches());
  EXPECT_EQ(r["config"]["num_batches"], (Json{{"value", 7}, {"origin", "command_line"}}));
  EXPECT_EQ(r["config"].size(), before["config"].size());
}

TEST(InstancesRecord, OneRepeatAndFewSteps) {
  auto measured = launches();
  measured.resize(3);
  for (InstanceLaunch& made : measured)
    for (MeasuredInstance& one : made.instances) one.latency.resize(5);
  const Json r = record(plan(1), measured);
  EXPECT_TRUE(r["points"][1]["cumulative"]["ci95"].is_null());
  EXPECT_TRUE(r["alone"][0]["latency_seconds"]["p90"].is_null());
  EXPECT_DOUBLE_EQ(r["alone"][0]["latency_seconds"]["p50"], 0.5);
  expect_valid(r, "one-repeat");
}

TEST(InstancesRecord, AFailedLaunchTakesItsPointAloneAlong) {
  auto measured = launches();
  measured[3].outcome.status = Status::failed;
  measured[3].outcome.reason = "the instance on slot 1 (MIG-1): killed by signal 9";
  measured[3].instances[1] = MeasuredInstance{.slot = 1, .log_path = "i.runs/b.log"};
  const Json r = record(plan(), measured, Status::failed, measured[3].outcome.reason);
  EXPECT_EQ(r["points"][0]["status"], "ok");
  EXPECT_DOUBLE_EQ(r["points"][0]["cumulative"]["mean"], 20);
  EXPECT_EQ(r["points"][1]["status"], "failed");
  EXPECT_TRUE(r["points"][1]["cumulative"].is_null());
  EXPECT_EQ(r["points"][1]["repeats"][0]["status"], "ok");
  EXPECT_EQ(r["points"][1]["repeats"][1]["reason"], measured[3].outcome.reason);
  expect_valid(r, "failed");
}

TEST(InstancesRecord, WithoutTheRateAloneThereIsNoRatio) {
  auto measured = launches();
  measured[1].outcome.status = Status::timeout;
  measured[1].outcome.reason = "not over after 6 s";
  const Json r = record(plan(), measured, Status::timeout, measured[1].outcome.reason);
  EXPECT_TRUE(r["alone"][1]["throughput"].is_null());
  EXPECT_FALSE(r["points"][1]["speedup"].is_null());
  EXPECT_TRUE(r["points"][1]["efficiency"].is_null());
  EXPECT_TRUE(r["points"][1]["per_instance"][1]["ratio"].is_null());
  EXPECT_FALSE(r["points"][1]["per_instance"][0]["ratio"].is_null());
  expect_valid(r, "no-alone");
}

TEST(InstancesRecord, WhatWasNotMeasuredIsInterrupted) {
  auto measured = launches();
  measured.resize(4);
  measured[3].outcome.status = Status::interrupted;
  measured[3].outcome.reason = "stopped from outside";
  const Json r = record(plan(), measured, Status::interrupted, "stopped from outside");
  EXPECT_EQ(r["alone"][0]["status"], "interrupted");
  EXPECT_EQ(r["alone"][0]["repeats"].size(), 1u);
  expect_valid(r, "interrupted");
  expect_valid(record(plan(), {}, Status::interrupted, "stopped from outside"), "nothing");
}

TEST(InstancesHash, IsOfWhatDecidesTheMeasurement) {
  const std::string hash = instances_hash(plan());
  InstancesPlan other = plan();
  other.slots[0].places[0].cpus = {7};
  EXPECT_EQ(instances_hash(other), hash) << "where it runs is the machine's";
  other.repeats = 3;
  EXPECT_NE(instances_hash(other), hash);
  other = plan();
  other.config.config.seed = 7;
  EXPECT_NE(instances_hash(other), hash);
  other = plan();
  other.config.command = Command::infer;
  EXPECT_NE(instances_hash(other), hash);
}

}  // namespace
}  // namespace scalemark::instances_test
