// Lines that MLPerf's tools take: the token, the keys, times that do not go back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "record/partly.hpp"
#include "result/monitoring.hpp"

namespace scalemark::mllog_test {
namespace {
using testing::ElementsAre;

const Json kRun = {{"status", "ok"},
                   {"model", "resnet50"},
                   {"world_size", 2},
                   {"device_name", "cpu"},
                   {"global_batch_size", 8},
                   {"created_at", "2030-01-31T12:00:09.000Z"},
                   {"started_at", "2030-01-31T12:00:00.500Z"},
                   {"step_seconds", {{"samples", {1, 1, 2}}}},
                   {"loss", {{"trace", {7.5, 7.0, nullptr}}, {"trace_stride", 1}}},
                   {"config",
                    {{"display_every", {{"value", 2}, {"origin", "default"}}},
                     {"seed", {{"value", 3}, {"origin", "file"}}}}}};

std::vector<Json> lines_of(const Json& run) {
  const std::string token = ":::MLLOG ";
  std::vector<Json> lines;
  std::istringstream text(mllog_text(test::partly<RunResult>(run)));
  for (std::string line; std::getline(text, line);) {
    EXPECT_TRUE(line.starts_with(token)) << line;
    lines.push_back(Json::parse(line.substr(token.size())));
  }
  return lines;
}

std::vector<std::string> keys_of(const std::vector<Json>& lines) {
  std::vector<std::string> keys;
  for (const Json& line : lines) keys.push_back(line.at("key"));
  return keys;
}

TEST(Mllog, HasARunWithBlocksOfSteps) {
  const auto lines = lines_of(kRun);
  EXPECT_THAT(
      keys_of(lines),
      ElementsAre("init_start", "submission_benchmark", "submission_platform", "global_batch_size",
                  "seed", "init_stop", "run_start", "block_start", "tracked_stats", "train_loss",
                  "block_stop", "block_start", "tracked_stats", "block_stop", "run_stop"));
  EXPECT_EQ(lines[8]["value"]["throughput"], 8.);  // two steps of 8 samples in 2 s
  EXPECT_EQ(lines[8]["metadata"]["samples_count"], 16.);
  EXPECT_EQ(lines[9]["value"], 7.0);
  EXPECT_EQ(lines[12]["value"]["throughput"], 4.);
  EXPECT_EQ(lines[14]["metadata"]["status"], "success");
}

TEST(Mllog, TimesAreThoseOfTheSteps) {
  const auto lines = lines_of(kRun);
  double before = 0;
  for (const Json& line : lines) {
    EXPECT_GE(line.at("time_ms").get<double>(), before);
    before = line["time_ms"];
    for (const char* key : {"namespace", "event_type", "value", "metadata"})
      EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(lines.back()["time_ms"].get<double>() - lines.front()["time_ms"].get<double>(), 4000);
  EXPECT_EQ(lines.front()["time_ms"], 1896091200500);
}

TEST(Mllog, ARunThatFailedIsAborted) {
  Json run = kRun;
  run["status"] = "timeout";
  run["started_at"] = nullptr;
  run["step_seconds"] = nullptr;
  const auto lines = lines_of(run);
  EXPECT_EQ(lines.back()["key"], "run_stop");
  EXPECT_EQ(lines.back()["metadata"]["status"], "aborted");
}

}  // namespace
}  // namespace scalemark::mllog_test
