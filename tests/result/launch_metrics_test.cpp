// What launches are compared by: where its fields say, and as docs/compare.md lists it.
#include "result/launch_metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "error.hpp"
#include "result/measured_launch.hpp"
#include "support/doc_table.hpp"

namespace scalemark::launch_metrics_test {
namespace {
using testing::ElementsAre;
using testing::Pair;

TEST(LaunchMetrics, AreReadWhereTheirFieldsStand) {
  MeasuredLaunch launch;
  add_record_metrics(launch, {{"steps", 4},
                              {"communication", {{"wire_bytes_per_step", 70}}},
                              {"noise", {{"communication_cpu_seconds", 2}}},
                              {"loss", {{"target", {{"seconds", nullptr}}}}},
                              {"latency_seconds", {{"p90", 0.5}}}});
  EXPECT_THAT(launch.metrics, ElementsAre(Pair("communication_cpu_seconds", 0.5),  // of a step
                                          Pair("latency_p90", 0.5), Pair("wire_bytes", 70)));
}

TEST(LaunchMetrics, OfPointsHaveTheNamesOfRuns) {
  MeasuredLaunch launch;
  add_point_metrics(launch, {{"exposed_seconds", 0.1}, {"target", {{"steps", 30}}}});
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
  if (!row.in_record) return row.about;
  std::string key = row.in_record->to_string().substr(1);
  std::ranges::replace(key, '/', '.');
  return fmt::format("`{}`{}", key, row.about.empty() ? "" : ": " + row.about);
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
