// The scaling record against its schema, and that every null is explained.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analysis/scaling/scaling.hpp"
#include "record/read.hpp"
#include "record/run.hpp"

namespace scalemark::scaling_record_test {
namespace {

PointRepeat repeat(double units, double seconds, bool baseline, const std::string& path) {
  PointRepeat r;
  r.run = "11111111-1111-4111-8111-111111111111";
  r.path = known_text(path);
  r.units = units;
  r.seconds = seconds;
  r.step_seconds_mean = seconds / 10;
  r.baseline = baseline;
  return r;
}

std::vector<PointRuns> runs(const std::string& path = "curve.runs/a.json") {
  return {{1, {repeat(160, 40, false, path), repeat(160, 41, false, path)}, {}},
          {2,
           {repeat(320, 44, false, path), repeat(320, 46, false, path)},
           {repeat(320, 42, true, path), repeat(320, 43, true, path)}}};
}

Json record(const std::vector<PointRuns>& points, Status status, const std::string& reason) {
  RecordContext context{{}, system_info(), {{"OMP_NUM_THREADS", "1"}}};
  context.config.config.ranks = {1, 2};
  return curve_json(make_scaling_record(context, 2, points, {}, {status, reason}));
}

Json answered(const RunConfig& config, const std::vector<PointRuns>& points) {
  RecordContext context{{}, system_info(), {}};
  context.config.config = config;
  return curve_json(make_scaling_record(context, 2, points, {}, {}));
}

void expect_valid(const Json& record, const std::string& name) {
  const auto folder = std::filesystem::path(SCALEMARK_BINARY_DIR) / "scaling_records";
  std::filesystem::create_directories(folder);
  const auto path = folder / (name + ".json");
  std::ofstream(path) << record.dump(2);
  const std::string root = SCALEMARK_SOURCE_DIR;
  const std::string command = "'" + root + "/.venv/bin/python' '" + root +
                              "/tests/result/validate_records.py' '" + path.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << path;
}

TEST(ScalingRecord, OfACompleteCurveIsValid) {
  const Json r = record(runs(), Status::ok, "");
  EXPECT_EQ(r["kind"], "scaling");
  EXPECT_EQ(r["base"]["ranks"], 1);
  EXPECT_DOUBLE_EQ(r["base"]["throughput"], 320.0 / 81);
  EXPECT_EQ(r["points"].size(), 2u);
  EXPECT_EQ(r["points"][1]["repeats"].size(), 4u);
  EXPECT_DOUBLE_EQ(r["points"][1]["repeats"][0]["throughput"], 320.0 / 44);
  EXPECT_EQ(r["points"][1]["exposed_method"], "baseline");
  EXPECT_EQ(r["points"][1]["exposed_ci95"].size(), 2u);
  EXPECT_EQ(r["repeat_unit"], "in_process");
  expect_valid(r, "complete");
}

/// A repeat that took a hundred times as long holds most of the seconds, and is one of ten to the
/// interval.
TEST(ScalingRecord, HoldsItsEstimatesWhereOneRepeatStalled) {
  auto points = runs();
  for (PointRuns& point : points)
    for (auto* repeats : {&point.repeats, &point.baselines})
      if (!repeats->empty()) repeats->resize(10, repeats->back());
  for (PointRepeat* stalled : {&points[0].repeats[4], &points[1].repeats[7]})
    stalled->seconds *= 100, stalled->step_seconds_mean *= 100;
  RunConfig config;
  config.ranks = {1, 2};
  config.solution_steps = 100;
  const Json r = answered(config, points);
  EXPECT_EQ(contradiction(r), std::nullopt);
  for (const Json& point : r["points"]) EXPECT_LE(point["ci95"][0], point["throughput"]);
  const Json& two = r["points"][1];
  EXPECT_LE(two["time_to_solution_speedup_ci95"][0], two["time_to_solution_speedup"]);
}

TEST(ScalingRecord, OfACurveThatEndedEarlyPublishesNoThroughput) {
  auto points = runs();
  points[0].repeats.pop_back();
  points[1].repeats.clear();
  const Json r = record(points, Status::interrupted, "ended after 3 of 6 runs");
  EXPECT_TRUE(r["base"]["throughput"].is_null());
  for (const Json& point : r["points"]) EXPECT_TRUE(point["throughput"].is_null());
  EXPECT_EQ(r["points"][1]["repeats"].size(), 2u) << "the runs that were done stay listed";
  expect_valid(r, "interrupted");
}

TEST(ScalingRecord, GivesEveryReasonOfANull) {
  auto points = runs();
  for (PointRuns& point : points) point.repeats.resize(1);
  points[1].baselines.clear();
  const Json r = record(points, Status::ok, "");
  EXPECT_EQ(
      r["unavailable"]["points.speedup_ci95"],
      "the base is compared with itself; one repeat has no interval: ask for more with --repeats");
  EXPECT_EQ(r["unavailable"]["points.ci95"],
            "one repeat has no interval: ask for more with --repeats");
  EXPECT_EQ(r["points"][1]["exposed_method"], "wait");
  EXPECT_EQ(r["unavailable"]["points.exposed_ci95"],
            "one rank has nothing to communicate; one repeat has no interval: ask for more "
            "with --repeats");
  expect_valid(r, "one_repeat");
}

TEST(ScalingRecord, ShowsTheBatchesAndTheTimeToSolution) {
  RunConfig config;
  config.ranks = {1, 2};
  config.scaling = Scaling::strong;
  config.global_batch_size = 64;
  config.solution_steps = 100;
  config.base_solution_steps = 400;
  config.base_batch_size = 16;
  const Json r = answered(config, runs());
  const Json &base = r["points"][0], &two = r["points"][1];
  EXPECT_EQ(base["batch_size_per_rank"], 16);
  EXPECT_EQ(base["global_batch_size"], 16);
  EXPECT_EQ(two["batch_size_per_rank"], 32);
  EXPECT_EQ(two["global_batch_size"], 64);
  EXPECT_DOUBLE_EQ(base["time_to_solution_seconds"], 400 * 81.0 / 20);
  EXPECT_DOUBLE_EQ(two["time_to_solution_seconds"], 100 * 90.0 / 20);
  EXPECT_DOUBLE_EQ(two["time_to_solution_speedup"], 4 * 81.0 / 90);
  EXPECT_DOUBLE_EQ(two["time_to_solution_efficiency"], 2 * 81.0 / 90);
  EXPECT_EQ(two["time_to_solution_speedup_ci95"].size(), 2u);
  expect_valid(r, "solution");
}

TEST(ScalingRecord, SaysWhichResourceIsCountedAndWhereItIsUnknown) {
  RunConfig config;
  config.ranks = {1, 2};
  config.resource = Resource::node;
  auto points = runs();
  for (PointRepeat& r : points[0].repeats) r.resources = 1;
  for (PointRepeat& r : points[1].repeats) r.resources = 1;
  const Json known = answered(config, points);
  EXPECT_EQ(known["resource"], "node");
  EXPECT_EQ(known["points"][1]["resources"], 1);
  EXPECT_EQ(known["points"][1]["efficiency"], known["points"][1]["speedup"]);
  expect_valid(known, "node");

  config.resource = Resource::gpu;
  const Json unknown = answered(config, runs());
  EXPECT_TRUE(unknown["points"][1]["efficiency"].is_null());
  for (const char* key : {"points.resources", "points.efficiency", "points.efficiency_ci95"})
    EXPECT_NE(unknown["unavailable"][key].get<std::string>().find("GPU"), std::string::npos) << key;
  expect_valid(unknown, "gpu");
}

TEST(ScalingRecord, SaysWhatTheTargetLossTook) {
  RunConfig config;
  config.ranks = {1, 2};
  config.target_loss = 0.3;
  auto points = runs();
  for (PointRepeat& r : points[0].repeats) r.target_steps = 57, r.target_seconds = 1.5;
  const Json r = answered(config, points);
  EXPECT_EQ(r["points"][0]["target"], (Json{{"reached", true}, {"steps", 57.0}, {"seconds", 1.5}}));
  EXPECT_EQ(r["points"][1]["target"]["reached"], false);
  EXPECT_TRUE(r["unavailable"].contains("points.target.steps"));
  expect_valid(r, "target");
}

TEST(ScalingRecord, OfACurveWithoutOneRunIsValid) {
  const Json r = record({{1, {}, {}}, {2, {}, {}}}, Status::failed, "");
  EXPECT_NE(r["reason"], "");
  expect_valid(r, "failed");
}

TEST(ScalingRecord, WarnsOfWhatDisturbedItsRunsAndOfThePreflight) {
  NoiseSummary noise;
  for (const double steal : {0.0, 0.2}) {
    RunResult run;
    run.noise.steal = steal;
    noise.add(run);
  }
  RecordContext context{{}, system_info(), {}};
  context.config.config.ranks = {1, 2};
  context.config.warnings = {"told"};
  context.preflight =
      record::PreflightReference{"12345678-9", Status::ok, std::string("warn"), "t", {}};
  const Json r = curve_json(make_scaling_record(context, 2, runs(), noise, {}));
  EXPECT_EQ(r["warnings"],
            (Json{"told", "the hypervisor took up to 20.0 % of the CPU time (steal) in 1 of 2 runs",
                  "preflight 12345678 has the verdict warn"}));
  expect_valid(r, "warnings");
}

TEST(ScalingRecord, WithoutFilesSaysThatPathsAreMissing) {
  const Json r = record(runs(""), Status::ok, "");
  EXPECT_TRUE(r["points"][0]["repeats"][0]["path"].is_null());
  EXPECT_TRUE(r["unavailable"].contains("points.repeats.path"));
  expect_valid(r, "no_files");
}

}  // namespace
}  // namespace scalemark::scaling_record_test
