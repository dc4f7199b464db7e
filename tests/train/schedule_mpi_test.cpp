// Schedules, clipping and the learnable data in the trainer as a whole, on 1 to 4 ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "config/learning_rate.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/optimizer.hpp"
#include "train/trainer.hpp"

namespace scalemark::schedule_mpi_test {
namespace {

using testing::bytes_of;
using testing::world;

RunConfig small_config() {
  RunConfig config;
  config.model = "smallnet";
  config.num_classes = 10;
  config.scaling = Scaling::strong;
  config.global_batch_size = 12;
  config.num_batches = 12;
  config.num_warmup_batches = 2;
  config.init_learning_rate = 0.02;
  config.bucket_mb = 0.02;
  config.data = SyntheticData::learnable;
  return config;
}

struct TrainedRun {
  Samples samples;
  std::vector<at::Tensor> weights;
  double gradient_norm = 0;  ///< of the last step, after clipping
};

TrainedRun run(const RunConfig& config, RankGroup group,
               CommunicatorKind kind = CommunicatorKind::mpi) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(kind, group, -1, config.wire_dtype);
  Trainer trainer(config, *device, group, plan_batch(config, group.size()));
  TrainedRun result{trainer.measure(group, *communicator, nullptr), {}};
  for (const Bucket& bucket : trainer.parameters().buckets())
    result.weights.push_back(bucket.weights.clone());
  result.gradient_norm =
      gradient_norm(trainer.parameters().buckets(), trainer.parameters().operators())
          .item<double>();
  return result;
}

RankGroup alone() { return *world().split(world().rank()); }

void expect_same_on_all_ranks(const TrainedRun& mine) {
  for (const at::Tensor& weights : mine.weights)
    for (const std::string& theirs : world().all_gather(bytes_of(weights)))
      EXPECT_EQ(theirs == bytes_of(weights), true);
  const std::string norm = bytes_of(at::full({}, mine.gradient_norm, at::kDouble));
  for (const std::string& theirs : world().all_gather(norm)) EXPECT_EQ(theirs == norm, true);
}

TEST(LearnableData, RanksLearnFromAGlobalBatchWhatOneRankLearns) {
  using enum LengthDistribution;
  // With unequal lengths a rank with more tokens weighs more: the loss is that of all tokens.
  for (const auto& [model, lengths] : {std::pair{"smallnet", fixed},
                                       {"transformer_tiny", fixed},
                                       {"transformer_tiny", lognormal}}) {
    RunConfig config = small_config();
    config.model = model;
    config.length_distribution = lengths;
    config.dropout = 0;
    config.sequence_length = 16;
    config.num_batches = 6;
    if (config.model != "smallnet") config.init_learning_rate = 1e-3;
    const auto shared = run(config, world()).samples.loss;
    config.micro_batch_size = 1;
    const auto in_parts = run(config, world()).samples.loss;
    config.micro_batch_size.reset();
    const auto single = run(config, alone(), CommunicatorKind::none).samples.loss;
    ASSERT_EQ(shared.size(), single.size());
    for (std::size_t i = 0; i < shared.size(); ++i) {
      EXPECT_NEAR(shared[i], single[i], 1e-3 * single[i]) << model << ", step " << i;
      EXPECT_NEAR(in_parts[i], single[i], 1e-3 * single[i]) << model << ", step " << i;
    }
    EXPECT_NE(shared[0], shared[1]);
  }
}

TEST(LearnableData, IsTakenInTurnFromARing) {
  RunConfig config = small_config();
  config.forward_only = true;
  config.num_warmup_batches = 0;
  config.num_batches = 32;
  const auto loss = run(config, world(), CommunicatorKind::none).samples.loss;
  ASSERT_EQ(loss.size(), 32u);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(loss[i], loss[i + 16]);
  EXPECT_NE(loss[0], loss[1]);
}

TEST(Schedule, AWarmUpOfTheWholeRunLearnsLess) {
  RunConfig config = small_config();
  config.data = SyntheticData::noise;
  const auto constant = run(config, world()).samples.loss;
  config.lr_warmup_steps = 1000;
  const auto slow = run(config, world()).samples.loss;
  EXPECT_GT(slow.back(), constant.back());
  config.lr_schedule = parse_lr_schedule("0.02;3s;0");
  config.init_learning_rate.reset();
  config.lr_warmup_steps.reset();
  const auto stopped = run(config, world()).samples.loss;
  EXPECT_NE(stopped[0], stopped[1]);  // steps 2 and 3 of the run: the third still updates
  for (std::size_t i = 1; i < stopped.size(); ++i) EXPECT_EQ(stopped[i], stopped[1]);
}

TEST(Schedule, OverlapLeavesTheSameWeightsBitForBitOnAllRanks) {
  RunConfig config = small_config();
  config.lr_schedule = parse_lr_schedule("polynomial");
  config.lr_warmup_steps = 5;
  config.clip_norm = 0.05;
  config.overlap = Overlap::none;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    config.precision = precision;
    config.overlap = Overlap::none;
    const TrainedRun after = run(config, world());
    config.overlap = Overlap::backward;
    const TrainedRun during = run(config, world());
    for (std::size_t i = 0; i < after.weights.size(); ++i)
      EXPECT_TRUE(at::equal(after.weights[i], during.weights[i])) << "bucket " << i;
    expect_same_on_all_ranks(during);
  }
}

TEST(Clipping, BoundsTheNormOfTheReducedGradients) {
  RunConfig config = small_config();
  const double free = run(config, world()).gradient_norm;
  config.clip_norm = 0.01;
  const TrainedRun clipped = run(config, world());
  EXPECT_GT(free, 0.01);
  EXPECT_NEAR(clipped.gradient_norm, 0.01, 1e-6);
  config.clip_norm = 1e6;
  EXPECT_EQ(run(config, world()).gradient_norm, free);
}

}  // namespace
}  // namespace scalemark::schedule_mpi_test
