// What launches are compared by: where its fields say, and as docs/compare.md lists it.
#include "result/launch_metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "result/measured_launch.hpp"
#include "support/doc_table.hpp"

namespace scalemark::launch_metrics_test {
namespace {
using testing::ElementsAre;
using testing::Pair;

TEST(LaunchMetrics, AreReadWhereTheirFieldsStand) {
  MeasuredLaunch launch;
  RunResult run;
  run.steps = 4;
  run.communication.emplace().wire_bytes_per_step = 70;
  run.noise.communication_cpu_seconds = 2.0;
  run.loss.emplace().target.emplace();  // not reached
  add_metrics(launch, run);
  EXPECT_EQ(launch.metrics.at("communication_cpu_seconds"), 0.5);  // of a step
  EXPECT_EQ(launch.metrics.at("wire_bytes"), 70);
  EXPECT_FALSE(launch.metrics.contains("target_seconds"));
  InferenceResult inference;
  inference.latency_seconds.emplace().p90 = 0.5;
  add_metrics(launch, inference);
  EXPECT_EQ(launch.metrics.at("latency_p90"), 0.5);
}

TEST(LaunchMetrics, OfPointsHaveTheNamesOfRuns) {
  MeasuredLaunch launch;
  record::ScalingPoint point;
  point.exposed_seconds = 0.1;
  point.target.emplace().steps = 30.0;
  add_metrics(launch, point);
  EXPECT_THAT(launch.metrics, ElementsAre(Pair("exposed_seconds", 0.1), Pair("target_steps", 30)));
}

TEST(LaunchMetrics, SayWhichDirectionIsBetter) {
  const Metric latency = find_metric("latency_p99", {}), bytes = find_metric("wire_bytes", {});
  EXPECT_FALSE(latency.higher_is_better);
  EXPECT_TRUE(latency.is_speed);
  EXPECT_FALSE(bytes.is_speed);
  EXPECT_TRUE(find_metric("throughput", {}).higher_is_better);
  EXPECT_THROW(find_metric("gemm.fp32.flops", {}), ConfigError);
}

TEST(LaunchMetrics, KindsAreThoseThatHaveTheField) {
  EXPECT_THAT(kinds_with({"wire_bytes"}), ElementsAre("run"));
  EXPECT_THAT(kinds_with({"exposed_seconds", "latency_mean"}),
              ElementsAre("inference", "run", "scaling"));
}

std::string what(const MetricRow& row) {
  if (row.key.empty()) return row.about;
  return fmt::format("`{}`{}", row.key, row.about.empty() ? "" : ": " + row.about);
}

TEST(LaunchMetrics, AreListedInTheDocument) {
  std::string table = "| metric | unit | better | of | what |\n| --- | --- | --- | --- | --- |\n";
  for (const MetricRow& row : metric_table())
    table += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", row.metric.name,
                         row.metric.of_record ? "units/s" : "", row.metric.unit,
                         row.metric.higher_is_better ? "higher" : "lower",
                         fmt::join(row.kinds, ", "), what(row));
  test::expect_on_page("compare.md", "metrics", table);
}

}  // namespace
}  // namespace scalemark::launch_metrics_test
