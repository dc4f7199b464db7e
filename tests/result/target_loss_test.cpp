// loss.target of a run record: exact values of hand-made reports.
#include <gtest/gtest.h>

#include "result/support.hpp"

namespace scalemark::target_loss_test {
namespace {

Json target_of(std::optional<double> target, const std::vector<double>& losses) {
  LoadedConfig config;
  config.config.target_loss = target;
  config.config.num_warmup_batches = 3;
  const std::size_t n = losses.size();
  std::vector<RankReport> reports{
      test::make_report(0, std::vector<double>(n, 1.0), std::vector<double>(n, 0.0)),
      test::make_report(1, std::vector<double>(n, 2.0), std::vector<double>(n, 0.0))};
  for (RankReport& report : reports) {
    report.samples.loss = losses;
    report.samples.warm_up_seconds = report.rank == 0 ? 5 : 4;
  }
  return test::make_run_record(test::make_context(config), test::make_facts(2), reports);
}

TEST(TargetLossRecord, CountsStepsAndSecondsFromTheFirstWarmUpStep) {
  const Json record = target_of(1, {5, 1, 5, 1, 5, 1, 1, 1});
  const Json& target = record["loss"]["target"];
  EXPECT_EQ(target["loss"], 1.0);
  EXPECT_EQ(target["reached"], true);
  EXPECT_EQ(target["steps"], 3 + 6);          // the median of steps 2 to 6 is 1
  EXPECT_EQ(target["seconds"], 4 + 6 * 2.0);  // of the slower rank, not 5 + 6
  EXPECT_EQ(record["throughput"]["mean"], 32 * 8 / 16.0) << "of all steps that ran";
}

TEST(TargetLossRecord, WhatWasNotReachedIsNullWithAReason) {
  const Json record = target_of(0.5, {5, 4, 3, 2, 1, 1, 1});
  const Json& target = record["loss"]["target"];
  EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(target["reached"], false);
  EXPECT_TRUE(target["steps"].is_null());
  EXPECT_TRUE(target["seconds"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("loss.target.steps"));
  EXPECT_TRUE(record["unavailable"].contains("loss.target.seconds"));
}

TEST(TargetLossRecord, WithoutTheKeyItIsNull) {
  const Json record = target_of(std::nullopt, {5, 4, 3, 2, 1});
  EXPECT_TRUE(record["loss"]["target"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("loss.target"));
}

}  // namespace
}  // namespace scalemark::target_loss_test
