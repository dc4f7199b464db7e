// Records of every kind as rows of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/study/study_record.hpp"
#include "result/records.hpp"

namespace scalemark::step_rows_test {
namespace {

const std::filesystem::path kSource = SCALEMARK_SOURCE_DIR;

double measured(const std::vector<StepRow>& rows, const Reading& reading) {
  const auto figure = measure_figure({"f", "ratio", {}, reading}, {{"s", rows}});
  EXPECT_EQ(figure.why(), "");
  return figure->value;
}

double measured(const Json& record, const Reading& reading) {
  return measured(step_rows(record), reading);
}

TEST(StepRows, OfACurveAreItsPointsAndTheirRounds) {
  const Json record = read_record(kSource / "results/baselines/resnet50-1gbit-none.json");
  const Json& points = record.at("points");
  EXPECT_DOUBLE_EQ(measured(record, {"s", "speedup", {{"ranks", 2}}}),
                   points[1].at("speedup").get<double>());
  // Rounds are paired: the geometric mean of their ratios, not the ratio of the points.
  std::size_t rounds = 0;
  for (const StepRow& row : step_rows(record))
    if (row.of_round && row.value("ranks") == 2 && row.value("baseline") == false) {
      EXPECT_TRUE(row.repeat);
      ++rounds;
    }
  std::size_t repeats = 0;
  for (const Json& repeat : points[1].at("repeats")) repeats += !repeat.at("baseline").get<bool>();
  EXPECT_EQ(rounds, repeats);
  const double all = measured(record, {"s", "throughput", {{"ranks", 2}}});
  EXPECT_NEAR(all / points[1].at("throughput").get<double>(), 1, 0.05);
  EXPECT_GT(measured(record, {"s", "throughput", {{"ranks", 2}, {"baseline", true}}}), all);
}

TEST(StepRows, OfADryRunAreArithmetic) {
  EXPECT_TRUE(plan_rows({{"points", {{{"ranks", 2}}}}}).front().planned);
  EXPECT_FALSE(step_rows({{"kind", "projection"}, {"points", {{{"ranks", 2}}}}}).front().planned)
      << "a projection is fitted to what was measured";
}

TEST(StepRows, OfInstancesKnowWhoIsAlone) {
  const auto repeat = [](double rate, double latency) {
    return Json{{"repeat", 1},
                {"throughput", rate},
                {"instances", {{{"latency_seconds", {{"p50", latency}}}}}}};
  };
  const Json record{{"kind", "instances"},
                    {"alone",
                     {{{"slot", 0}, {"throughput", 10}, {"repeats", {repeat(10, 0.1)}}},
                      {{"slot", 1}, {"throughput", 11}, {"repeats", {repeat(11, 0.09)}}}}},
                    {"points",
                     {{{"instances", 2},
                       {"cumulative", {{"mean", 19}, {"ci95", nullptr}}},
                       {"repeats", {repeat(19, 0.11)}}}}}};
  EXPECT_DOUBLE_EQ(measured(record, {"s", "throughput", {{"instances", 2}}}), 19);
  const std::string latency = "/instances/0/latency_seconds/p50";
  EXPECT_NEAR(
      measured(
          record,
          {"s", latency, {{"instances", 2}}, Where{{"alone", true}, {"slot", 1}}, "s", latency}),
      0.11 / 0.09, 1e-12);
}

TEST(StepRows, OfPlansAndPreflights) {
  const Json plan =
      Json::parse(R"({"points": [{"ranks": 64, "bytes": 128}, {"ranks": 1, "bytes": 2}]})");
  EXPECT_DOUBLE_EQ(
      measured(plan_rows(plan), {"s", "bytes", {{"ranks", 64}}, Where{{"ranks", 1}}, "s", "bytes"}),
      64);
  const Json preflight = Json::parse(
      R"({"kind": "preflight", "checks": [{"name": "gemm.fp32", "statistic": "flops", "value": 2e9},
                                          {"name": "noise", "statistic": "steal", "value": 0}]})");
  EXPECT_DOUBLE_EQ(measured(preflight, {"s", "value", {{"name", "gemm.fp32"}}}), 2e9);
}

}  // namespace
}  // namespace scalemark::step_rows_test
