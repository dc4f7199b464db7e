// The plan of the published strong-scaling study: a global batch of 819,200 tokens (Transformer
// big).
#include "analysis/run_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "models/catalog.hpp"
#include "report/tables.hpp"
#include "result/records.hpp"

namespace scalemark::run_plan_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kParameters = 209'915'904;

/// The message of a refusal.
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return {};
}

/// What --dry_run prints.
std::string plan_text(const RunConfig& config, const std::vector<std::int64_t>& ranks,
                      bool keeps_weights) {
  const auto plans = plan_curves(config, ranks, keeps_weights);
  return config.json ? record_text(plans_json(plans)) : run_plan_table(plans);
}

TEST(DryRun, FindsTheLargestBatchThatFits) {
  RunConfig config;
  config.model = "llama3_8b";
  config.sequence_length = 8192;
  config.precision = Precision::bf16;
  config.shard = Shard::parameters;
  config.recompute = Recompute::layer;
  config.largest_batch = true;
  config.device_memory = 80;
  for (const std::int64_t ranks : {8, 64}) {
    const PointPlan largest = plan_point(config, ranks, false);
    EXPECT_TRUE(*largest.fits);
    RunConfig more = config;
    more.batch_size = largest.batch.batch_size_per_rank + 1;
    EXPECT_FALSE(*plan_point(more, ranks, false).fits) << ranks;
  }
  const PointPlan alone = plan_point(config, 1, false);
  EXPECT_FALSE(*alone.fits);
  EXPECT_EQ(alone.batch.batch_size_per_rank, 1);
  config.model = "resnet50";
  config.image_size = 224;
  EXPECT_GT(plan_point(config, 1, false).batch.batch_size_per_rank, 1);
}

RunConfig study() {
  RunConfig config;
  config.model = "transformer_big";
  config.scaling = Scaling::strong;
  config.global_batch_tokens = 819'200;
  config.micro_batch_size = 16;
  return config;
}

TEST(DryRun, PlansTheStrongScalingStudy) {
  struct Expected {
    std::int64_t ranks, batch, micro_batches;
  };
  for (const auto& [ranks, batch, micro_batches] :
       {Expected{1, 12'800, 800}, Expected{16, 800, 50}, Expected{200, 64, 4}}) {
    const PointPlan plan = plan_point(study(), ranks, false);
    EXPECT_EQ(plan.batch.global_batch_size, 12'800);
    EXPECT_EQ(plan.batch.batch_size_per_rank, batch);
    EXPECT_EQ(plan.batch.micro_batch_size, 16);
    EXPECT_EQ(plan.batch.micro_batches(), micro_batches);
    EXPECT_EQ(plan.units_per_step, 819'200);
    EXPECT_EQ(plan.weight_bytes, 4 * kParameters);
    EXPECT_EQ(plan.gradient_bytes, 4 * kParameters);
    EXPECT_EQ(plan.optimizer_bytes, 8 * kParameters);
    EXPECT_EQ(plan.wire_bytes_per_step, 2 * (ranks - 1) * 4 * kParameters / ranks);
    EXPECT_EQ(plan.activation_bytes, 16 * find_model("transformer_big")->activation_bytes);
  }
}

TEST(DryRun, TheBaseOfAStudyHasItsOwnBatch) {
  // 819,200 tokens on 200 nodes with two workers each, against one node with 25,600 tokens a
  // worker.
  RunConfig config = study();
  config.solution_steps = 1'000;
  config.base_solution_steps = 16'000;
  config.base_batch_size = 400;
  config.json = true;
  const auto points = nlohmann::json::parse(plan_text(config, {2, 400}, true))["points"];
  EXPECT_EQ(points[0]["batch_size_per_rank"], 400);
  EXPECT_EQ(points[0]["units_per_step"], 51'200);
  EXPECT_EQ(points[1]["batch_size_per_rank"], 32);
  EXPECT_EQ(points[1]["units_per_step"], 819'200);
}

TEST(DryRun, PlansEveryCurve) {
  RunConfig config = study();
  config.more_precisions = {Precision::bf16};
  const std::string text = plan_text(config, {1, 200}, false);
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("transformer_big, fp32"),
                                     HasSubstr("transformer_big, bf16")));
  config.json = true;
  const auto plans = nlohmann::json::parse(plan_text(config, {1, 200}, false));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0]["points"][0]["shadow_bytes"], 0);
  EXPECT_GT(plans[1]["points"][0]["shadow_bytes"], 0);
}

TEST(DryRun, C10dHoldsBucketsOfItsOwn) {
  RunConfig config = study();
  config.reducer = Reducer::c10d;
  EXPECT_EQ(plan_point(config, 2, false).gradient_bytes, 8 * kParameters);
}

TEST(DryRun, NarrowTypesHalveWhatTheyShould) {
  RunConfig config = study();
  const PointPlan wide = plan_point(config, 2, true);
  EXPECT_EQ(wide.kept_bytes, wide.weight_bytes);
  config.precision = Precision::bf16;
  config.wire_dtype = WireDtype::bf16;
  const PointPlan narrow = plan_point(config, 2, true);
  EXPECT_EQ(narrow.shadow_bytes, wide.weight_bytes / 2);
  EXPECT_EQ(narrow.wire_bytes_per_step, wide.wire_bytes_per_step / 2);
  EXPECT_EQ(narrow.activation_bytes, wide.activation_bytes / 2);
  EXPECT_EQ(narrow.weight_bytes, wide.weight_bytes);
}

TEST(DryRun, CountsWhatTheModelCounts) {
  RunConfig config;
  config.model = "bert_large";
  const PointPlan plan = plan_point(config, 2, false);
  EXPECT_EQ(plan.units_per_step, 8);
  EXPECT_EQ(plan.optimizer_bytes, 2 * plan.weight_bytes);
  EXPECT_THAT(plan_text(config, {2}, false), HasSubstr("sequences/step"));
  config.optimizer = Optimizer::lars;
  EXPECT_EQ(plan_point(config, 2, false).optimizer_bytes, plan.weight_bytes);
}

/// The published accumulation of Transformer-big's tied embedding: 64 ranks with 5,000 tokens of
/// source and of target each.
TEST(DryRun, ShowsWhatASparseTiedGradientHolds) {
  RunConfig config;
  config.model = "transformer_big";
  config.sequence_length = 100;
  config.batch_size = 50;
  const PointPlan dense = plan_point(config, 64, false);
  EXPECT_EQ(dense.embedding.buffer_bytes(), 4 * 32'768 * 1024);
  config.embedding_gradients = EmbeddingGradients::sparse;
  config.tied_gradient = TiedGradient::sparse;
  const PointPlan sparse = plan_point(config, 64, false);
  EXPECT_EQ(sparse.embedding.rows_per_rank, 32'768 + 10'000);
  const auto ratio = static_cast<double>(sparse.embedding.buffer_bytes()) /
                     static_cast<double>(dense.embedding.buffer_bytes());
  EXPECT_NEAR(ratio / (1 + 8. / 4096), 83.5, 0.05);  // an index beside every row
  EXPECT_EQ(sparse.wire_bytes_per_step,
            2 * 63 * (dense.gradient_bytes - dense.embedding.dense_bytes) / 64 +
                63 * sparse.embedding.gathered_bytes / 64);
  EXPECT_EQ(sparse.memory_bytes() - dense.memory_bytes(),
            65 * sparse.embedding.gathered_bytes / 64);  // its own rows lie beside those of all
  config.micro_batch_size = 10;                          // collected over all passes
  EXPECT_EQ(plan_point(config, 64, false).embedding.rows_per_rank, 32'768 + 10'000);
  EXPECT_THAT(plan_text(config, {64, 256}, false), HasSubstr("10.46 GiB"));
  config.json = true;
  EXPECT_THAT(
      plan_text(config, {64}, false),
      HasSubstr("\"embedding_buffer_bytes\": " + std::to_string(sparse.embedding.buffer_bytes())));
}

/// What a run of llama_tiny on two ranks sends: its two blocks have 184,320 elements each.
TEST(DryRun, MicroBatchesGatherAgainWhatWasFreed) {
  RunConfig config;
  config.model = "llama_tiny";
  config.batch_size = 4;
  config.shard = Shard::parameters;
  const auto weights = [&] { return plan_point(config, 2, false).collectives[1]; };
  EXPECT_EQ(weights().messages, 5);
  EXPECT_EQ(weights().bytes, 4 * (500'352 + 184'320));
  config.micro_batch_size = 2;
  EXPECT_EQ(weights().messages, 7);
  EXPECT_EQ(weights().bytes, 4 * (500'352 + 3 * 184'320));
  EXPECT_EQ(plan_point(config, 2, false).collectives[0].messages, 8);
  config.shard = Shard::optimizer;
  EXPECT_EQ(weights().bytes, 4 * 500'352);
}

TEST(DryRun, ImagesHaveNoEmbeddings) {
  EXPECT_EQ(plan_point(RunConfig{}, 4, false).embedding.buffer_bytes(), 0);
  EXPECT_THAT(plan_text(RunConfig{}, {4}, false), HasSubstr("none"));
}

/// 8 B parameters on 64 ranks in groups of 8: memory of 8 ranks, and a sum between the groups.
TEST(DryRun, GroupsHoldWhatTheirRanksDivide) {
  RunConfig config;
  config.model = "llama3_8b";
  config.precision = Precision::bf16;
  config.shard = Shard::parameters;
  const PointPlan eight = plan_point(config, 8, false);
  config.shard_ranks = 8;
  EXPECT_EQ(plan_point(config, 8, false).memory_bytes(), eight.memory_bytes());
  EXPECT_EQ(plan_point(config, 4, false).collectives.size(), 2u);  // divided among all four
  const PointPlan many = plan_point(config, 64, false);
  EXPECT_EQ(many.memory_bytes(), eight.memory_bytes());
  ASSERT_EQ(many.collectives.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(many.collectives[i].wire_bytes, eight.collectives[i].wire_bytes);
  const CollectivePlan& between = many.collectives[2];
  EXPECT_EQ(between.collective, Collective::allreduce);
  EXPECT_EQ(between.messages, many.collectives[0].messages);
  EXPECT_EQ(between.bytes, many.weight_bytes);
  EXPECT_EQ(between.wire_bytes, 2 * 7 * between.bytes / 8);
  EXPECT_EQ(many.wire_bytes_per_step, eight.wire_bytes_per_step + between.wire_bytes);
  EXPECT_THAT(plan_text(config, {64}, false), HasSubstr("shard parameters in groups of 8 ranks"));
  config.shard_ranks = 1;
  EXPECT_EQ(plan_point(config, 4, false).collectives.size(), 1u);
  config.shard_ranks = 5;
  EXPECT_THAT(refusal([&] { plan_point(config, 64, false); }), HasSubstr("1, 2, 4, 8"));
}

TEST(DryRun, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(refusal([] { plan_point(study(), 3, false); }),
              ::testing::AllOf(HasSubstr("819072 and 819264"), HasSubstr("3 ranks")));
  RunConfig config = study();
  config.micro_batch_size = 7;
  EXPECT_THAT(refusal([&] { plan_point(config, 200, false); }), HasSubstr("4 and 8"));
}

TEST(DryRun, PrintsALineAPoint) {
  const std::string text = plan_text(study(), {1, 200}, false);
  EXPECT_THAT(text, HasSubstr("Strong scaling of transformer_big"));
  EXPECT_THAT(text, HasSubstr("800 x 16"));
  EXPECT_THAT(text, HasSubstr("4 x 16"));
  EXPECT_THAT(text, HasSubstr("819200"));
}

}  // namespace
}  // namespace scalemark::run_plan_test
