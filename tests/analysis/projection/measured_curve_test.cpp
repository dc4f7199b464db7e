// Curves from launches: what is taken from the records and what is refused.
#include "analysis/projection/measured_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/compare_support.hpp"
#include "error.hpp"

namespace scalemark::measured_curve_test {
namespace {
using test::launch;
using test::result_set;
using testing::HasSubstr;

TEST(MeasuredCurve, PointsAreRanksWithTheirLaunches) {
  const MeasuredCurve curve =
      curve_of(result_set("a", {launch(100, 2), launch(60, 1), launch(110, 2)}));
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_EQ(curve.points[0].ranks, 1);
  EXPECT_EQ(curve.points[0].batch_per_rank, 4);
  EXPECT_DOUBLE_EQ(curve.points[0].step_seconds[0], 4. / 60);
  ASSERT_EQ(curve.points[1].step_seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(curve.points[1].step_seconds[1], 8. / 110);
  EXPECT_EQ(curve.kind, "launches");
  EXPECT_EQ(curve.ranks_per_node, 2);  // both ranks ran on one host
  EXPECT_EQ(curve.buckets.gradient_bytes, 4 * 88'584);
  EXPECT_EQ(curve.buckets.bucket_bytes, 8 << 20);
}

TEST(MeasuredCurve, OfAStrongCurveEachRankHasItsShare) {
  ResultSet set = result_set("a", {launch(100, 1), launch(180, 2)});
  for (MeasuredLaunch& one : set.launches) {
    one.keys.erase("batch_size");
    one.keys["global_batch_size"] = 64;
    one.keys["scaling"] = "strong";
    one.keys["wire_dtype"] = "bf16";
    one.keys["overlap"] = "none";
  }
  const MeasuredCurve curve = curve_of(set);
  EXPECT_EQ(curve.scaling, Scaling::strong);
  EXPECT_EQ(curve.points[1].batch_per_rank, 32);
  EXPECT_DOUBLE_EQ(curve.points[1].step_seconds[0], 64. / 180);
  EXPECT_EQ(curve.buckets.gradient_bytes, 2 * 88'584);
  EXPECT_EQ(curve.buckets.hiding, Hiding::none);
}

TEST(MeasuredCurve, TokensOfASequenceAreCounted) {
  ResultSet set = result_set("a", {launch(1000, 1), launch(1900, 2)});
  for (MeasuredLaunch& one : set.launches) {
    one.keys["model"] = "transformer_big";
    one.unit = "tokens/sec";
    one.keys["sequence_length"] = nullptr;
  }
  EXPECT_EQ(curve_of(set).units_per_sample, 64);
  for (MeasuredLaunch& one : set.launches) one.keys["sequence_length"] = 32;
  EXPECT_DOUBLE_EQ(curve_of(set).points[0].step_seconds[0], 4 * 32. / 1000);
}

TEST(MeasuredCurve, BaselinesAndSpreadsAreTaken) {
  ResultSet set = result_set("a", {launch(100, 1), launch(150, 2)});
  set.launches[0].step_deviation = 0.03;
  set.launches[1].baseline_throughput = 160;
  const MeasuredCurve curve = curve_of(set);
  EXPECT_FALSE(curve.points[0].baseline_step_seconds);
  EXPECT_DOUBLE_EQ(*curve.points[1].baseline_step_seconds, 8. / 160);
  EXPECT_EQ(curve.step_deviation, 0.03);
}

ResultSet shards_of(const std::string& shard, const std::string& model) {
  ResultSet set = result_set("a", {launch(100, 1), launch(150, 2)});
  for (MeasuredLaunch& one : set.launches) {
    one.keys["shard"] = shard;
    one.keys["model"] = model;
    one.keys["bucket_mb"] = 0.25;
  }
  return set;
}

TEST(MeasuredCurve, ShardsArePlannedAsByADryRun) {
  EXPECT_FALSE(curve_of(shards_of("none", "llama_tiny")).buckets.shard.divides);
  const MeasuredCurve first = curve_of(shards_of("optimizer", "llama_tiny"));
  EXPECT_EQ(*first.shard, "optimizer");
  EXPECT_TRUE(first.buckets.shard.divides);
  EXPECT_FALSE(first.buckets.shard.after_passes);
  EXPECT_EQ(first.buckets.shard.kept_bytes, 4 * 500'352);
  EXPECT_EQ(first.buckets.shard.blocks, 0);
  ResultSet set = shards_of("parameters", "llama_tiny");
  for (MeasuredLaunch& one : set.launches) {
    one.keys["precision"] = "bf16";
    one.keys["micro_batch_size"] = 2;
  }
  const ShardPlan third = curve_of(set).buckets.shard;
  EXPECT_TRUE(third.after_passes);
  EXPECT_EQ(third.micro_batch, 2);
  EXPECT_EQ(third.kept_bytes, 2 * (500'352 - 2 * 184'320));
  EXPECT_EQ(third.blocks, 2);
  EXPECT_EQ(third.block_bytes, 2 * 184'320);
  EXPECT_DOUBLE_EQ(third.block_share, 184'320. / 500'352);
  EXPECT_EQ(third.early_share, 0);  // its head is the table, which is ready last
  const ShardPlan untied = curve_of(shards_of("parameters", "llama_125m")).buckets.shard;
  EXPECT_NEAR(untied.early_share, 0.5, 0.01);
  EXPECT_EQ(curve_of(shards_of("parameters", "resnet18")).buckets.shard.blocks, 0);
}

std::string refusal(const ResultSet& set) {
  try {
    curve_of(set);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MeasuredCurve, UnlikeLaunchesAreRefused) {
  EXPECT_THAT(refusal(result_set("a", {launch(100, 1), launch(150, 2, "bf16")})),
              HasSubstr("differ in precision (fp32; bf16)"));
  ResultSet mixed = result_set("a", {launch(100, 1), launch(150, 2)});
  mixed.launches[1].keys["scaling"] = "strong";
  EXPECT_THAT(refusal(mixed), HasSubstr("differ in scaling"));
  ResultSet shards = shards_of("optimizer", "llama_tiny");
  shards.launches[1].keys["shard"] = "none";
  EXPECT_THAT(refusal(shards), HasSubstr("differ in shard (optimizer; none)"));
  ResultSet groups = shards_of("optimizer", "llama_tiny");
  for (MeasuredLaunch& one : groups.launches) one.keys["shard_ranks"] = 2;
  EXPECT_THAT(refusal(groups), HasSubstr("shard_ranks is 2"));
  ResultSet unknown = result_set("a", {launch(100, 1), launch(150, 2)});
  for (MeasuredLaunch& one : unknown.launches) one.keys["model"] = "resnet1";
  EXPECT_THAT(refusal(unknown), HasSubstr("no facts about the model resnet1"));
  ResultSet inference = result_set("a", {launch(100, 1), launch(150, 2)});
  for (MeasuredLaunch& one : inference.launches) one.keys["kind"] = "inference";
  EXPECT_THAT(refusal(inference), HasSubstr("inferences communicate nothing"));
}

}  // namespace
}  // namespace scalemark::measured_curve_test
