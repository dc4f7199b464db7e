// Windows of made reports: which steps they hold, what becomes of the ranks' readings, the verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/read.hpp"
#include "record/write.hpp"
#include "result/run_metrics.hpp"
#include "result/support.hpp"
#include "result/warnings.hpp"

namespace scalemark::run_windows_test {
namespace {
using testing::HasSubstr;

Json windows_of(const std::vector<RankReport>& reports, double seconds, double units = 16) {
  ResolvedConfig config;
  config.window_seconds = seconds;
  RunResult run;
  run.windows = scalemark::windows_of(config, units, reports);
  return record_json(run);
}

RankReport rank_of(std::vector<double> steps) {
  RankReport report = test::make_report(0, steps, std::vector<double>(steps.size(), 0.));
  report.samples.units.assign(steps.size(), 8);
  return report;
}

MachineReading reading(double at, double mhz, double joules) {
  MachineReading made;
  made.at = at;
  made.cpu_mhz = mhz;
  made.memory_bytes = 1000 * mhz;
  made.host_joules = joules;
  return made;
}

TEST(Windows, HoldTheStepsThatEndInThem) {
  const Json windows = windows_of({rank_of({0.4, 0.4, 0.4, 0.4, 0.4})}, 1)["windows"];
  EXPECT_EQ(windows["seconds"], 1.);
  ASSERT_EQ(windows["series"].size(), 3u);  // ends at 0.4, 0.8 | 1.2, 1.6 | 2.0
  EXPECT_EQ(windows["series"][0]["steps"], 2);
  EXPECT_DOUBLE_EQ(windows["series"][0]["throughput"], 20);
  EXPECT_EQ(windows["series"][2]["begin_seconds"], 2.);
  EXPECT_EQ(windows["series"][2]["steps"], 1);
}

TEST(Windows, RanksAddUpAndTheSlowestClockCounts) {
  RankReport first = rank_of({0.5, 0.5, 0.5, 0.5}), second = rank_of({0.5, 0.5, 0.5, 0.5});
  first.readings = {reading(0.2, 3000, 100), reading(0.7, 2000, 150), reading(1.2, 1000, 300)};
  second.readings = {reading(0.2, 2600, 0), reading(0.7, 2600, 25), reading(1.3, 2600, 50)};
  const Json series = windows_of({first, second}, 1)["windows"]["series"];
  ASSERT_EQ(series.size(), 3u);
  EXPECT_DOUBLE_EQ(series[1]["throughput"], 32);
  EXPECT_DOUBLE_EQ(series[0]["cpu_mhz"], 2500);
  EXPECT_DOUBLE_EQ(series[0]["memory_bytes"], 2.6e6);  // of the rank with most
  EXPECT_DOUBLE_EQ(series[1]["cpu_mhz"], 1000);
  EXPECT_NEAR(series[0]["host_watts"], 50 / 0.5 + 25 / 0.5, 1e-9);
  EXPECT_NEAR(series[1]["host_watts"], 150 / 0.5 + 25 / 0.6, 1e-9);
  EXPECT_TRUE(series[2]["cpu_mhz"].is_null());
}

TEST(Windows, WhatNoMachineTellsHasAReason) {
  const Json record = windows_of({rank_of(std::vector<double>(40, 0.1))}, 1);
  EXPECT_TRUE(record["windows"]["series"][0]["gpu_watts"].is_null());
  EXPECT_EQ(record["unavailable"]["windows.series.gpu_watts"], "the machine does not tell");
}

TEST(Windows, ALongRunHasLongerOnes) {
  const Json windows = windows_of({rank_of(std::vector<double>(3000, 1.))}, 1)["windows"];
  EXPECT_EQ(windows["seconds"], 8.);
  EXPECT_LE(windows["series"].size(), 501u);
}

/// 240 steps whose second half takes `factor` times as long, with the clock that goes with them.
Json half_as(double factor) {
  std::vector<double> steps;
  for (int i = 0; i < 240; ++i)
    steps.push_back((i < 120 ? 0.1 : 0.1 * factor) * (1 + 1e-3 * (i % 5)));
  RankReport report = rank_of(steps);
  for (int i = 0; i < 48; ++i)
    report.readings.push_back(reading(0.5 * i, i < 24 ? 3000 : 3000 / factor, 0));
  return windows_of({report}, 1);
}

TEST(Windows, AFallIsSlowerAndSaysWhatFellWithIt) {
  const Json record = half_as(1.2), drift = record["windows"]["drift"];
  EXPECT_EQ(drift["verdict"], "slower");
  EXPECT_NEAR(drift["change"], -0.18, 0.02);
  EXPECT_LT(drift["p"], 0.01);
  EXPECT_LT(drift["beside"].value("cpu_mhz", 0.), -0.1);
}

TEST(Windows, ARiseIsFasterAndNothingIsSteady) {
  EXPECT_EQ(half_as(0.9)["windows"]["drift"]["verdict"], "faster");
  const Json drift = half_as(1)["windows"]["drift"];
  EXPECT_EQ(drift["verdict"], "steady");
  EXPECT_TRUE(drift["beside"].empty());
}

TEST(Windows, ASmallChangeIsNeitherShownNorSteadyWhereNoiseIsLarger) {
  std::vector<double> steps;
  for (int i = 0; i < 60; ++i) steps.push_back(0.1 * (1 + 0.5 * (i * i % 7) / 7));
  EXPECT_EQ(windows_of({rank_of(steps)}, 1)["windows"]["drift"]["verdict"], "not shown");
}

TEST(Windows, TooFewStepsHaveNoVerdictButAReason) {
  const Json record = windows_of({rank_of(std::vector<double>(20, 0.1))}, 1);
  EXPECT_TRUE(record["windows"]["drift"].is_null());
  EXPECT_EQ(record["unavailable"]["windows.drift"], "fewer than 24 steps: measure longer");
}

TEST(Windows, AreNullWithAReasonWhereTheyMeanNothing) {
  EXPECT_THAT(scalemark::windows_of(ResolvedConfig{}, 16, {rank_of({0.1})}).why(),
              HasSubstr("--window_seconds"));
  RankReport alternating = rank_of({0.1});
  alternating.samples.slices = 2;
  EXPECT_THAT(windows_of({alternating}, 1)["unavailable"]["windows"], HasSubstr("alternated"));
  EXPECT_EQ(windows_of({rank_of({})}, 1)["unavailable"]["windows"], "no step was completed");
}

TEST(Windows, ADriftIsAWarning) {
  RunResult run;
  run.windows = part_from<record::Windows>(half_as(1.2)["windows"]);
  const auto warnings = run_warnings(run);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("the throughput fell by 18 % while it was measured"));
  EXPECT_THAT(warnings[0], HasSubstr("cpu_mhz by -17 %"));
}

}  // namespace
}  // namespace scalemark::run_windows_test
