// --overlap step on 1 to 4 ranks: the arithmetic of --overlap backward, bit for bit.
#include <gtest/gtest.h>

#include <numeric>

#include "config/learning_rate.hpp"
#include "platform/tree.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/embedding_tables.hpp"
#include "train/trainer.hpp"

namespace scalemark::overlap_step_mpi_test {
namespace {

using testing::bytes_of;
using testing::small_config;
using testing::world;

struct Trained {
  Samples samples;
  std::vector<std::string> weights;  ///< by bucket
};

Trained train(RunConfig config, Overlap overlap) {
  config.overlap = overlap;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator =
      make_communicator(CommunicatorKind::mpi, world(), -1, config.wire_dtype);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  world().agree_on([&] { trainer.open_checkpoints(world()); });
  Trained trained{trainer.measure(world(), *communicator, nullptr), {}};
  for (const Bucket& bucket : trainer.parameters().buckets())
    trained.weights.push_back(bytes_of(bucket.weights));
  return trained;
}

/// Weights and losses of both.
void expect_the_same(const RunConfig& config) {
  const Trained in_backward = train(config, Overlap::backward);
  const Trained in_step = train(config, Overlap::step);
  ASSERT_EQ(in_step.weights.size(), in_backward.weights.size());
  for (std::size_t i = 0; i < in_step.weights.size(); ++i)
    EXPECT_TRUE(in_step.weights[i] == in_backward.weights[i]) << "bucket " << i;
  EXPECT_EQ(in_step.samples.loss, in_backward.samples.loss);
}

TEST(OverlapStep, LeavesTheWeightsOfBackward) {
  RunConfig config = small_config();
  expect_the_same(config);
  config.precision = Precision::bf16;
  expect_the_same(config);
  config.wire_dtype = WireDtype::bf16;
  expect_the_same(config);
}

TEST(OverlapStep, LeavesTheWeightsOfEveryRuleAndNetwork) {
  using Case = std::pair<const char*, Optimizer>;
  for (const auto& [model, rule] : {Case{"smallnet", Optimizer::lars},
                                    {"transformer_tiny", Optimizer::adam},
                                    {"bert_tiny", Optimizer::lamb}}) {
    SCOPED_TRACE(model);
    RunConfig config = small_config();
    config.model = model;
    config.num_batches = 4;
    config.optimizer = rule;
    config.init_learning_rate = 1e-3;
    expect_the_same(config);
  }
}

TEST(OverlapStep, WaitsForRowsOfTables) {
  for (const TiedGradient tied : {TiedGradient::dense, TiedGradient::sparse}) {
    RunConfig config = small_config();
    config.model = "transformer_tiny";
    config.num_batches = 4;
    config.init_learning_rate = 1e-3;
    config.embedding_gradients = EmbeddingGradients::sparse;
    config.tied_gradient = tied;
    expect_the_same(config);
  }
}

TEST(OverlapStep, TakesMicroBatchesAndSchedules) {
  RunConfig config = small_config();
  config.micro_batch_size = 2;
  config.lr_schedule = parse_lr_schedule("polynomial");
  config.lr_warmup_steps = 5;
  expect_the_same(config);
}

/// All steps are within the clock: the last one's sums too.
TEST(OverlapStep, MeasuresEveryStepAndItsCommunication) {
  const Trained trained = train(small_config(), Overlap::step);
  const Samples& samples = trained.samples;
  EXPECT_EQ(samples.step_seconds.size(), 12u);
  EXPECT_EQ(samples.wait_seconds.size(), 12u);
  EXPECT_GE(samples.wall_seconds,
            std::accumulate(samples.step_seconds.begin(), samples.step_seconds.end(), 0.) * 0.99);
  if (world().size() > 1) {
    EXPECT_GT(samples.communication_seconds, 0);
  }
}

TEST(OverlapStep, StopsLikeAnyOther) {
  RunConfig config = small_config();
  config.num_batches = 1'000'000;
  config.max_seconds = 0.3;
  const Trained trained = train(config, Overlap::step);
  EXPECT_EQ(trained.samples.stop_reason, StopReason::max_seconds);
  for (const std::string& weights : trained.weights)
    for (const std::string& theirs : world().all_gather(weights)) EXPECT_TRUE(theirs == weights);
}

/// The weights after the step that a checkpoint is named after, not those before its update.
TEST(OverlapStep, CheckpointsHoldTheUpdatedWeights) {
  test::Tree tree;
  RunConfig config = small_config();
  config.checkpoint_every = 5;
  std::vector<std::vector<at::Tensor>> read;
  for (const Overlap overlap : {Overlap::backward, Overlap::step}) {
    config.checkpoint_dir = (tree.root() / std::string(to_string(overlap))).string();
    train(config, overlap);
    if (world().rank() != 0) continue;
    const auto model = make_model({config.model, 32, 10, true});
    torch::load(model, *config.checkpoint_dir + "/checkpoint-00000012.pt");
    read.push_back(model->parameters());
  }
  if (world().rank() != 0) return;
  for (std::size_t i = 0; i < read[0].size(); ++i) EXPECT_TRUE(at::equal(read[0][i], read[1][i]));
}

TEST(OverlapStep, KnowsWhenEveryParameterIsNeeded) {
  for (const char* name : {"smallnet", "trivial", "resnet18", "transformer_tiny", "bert_tiny"}) {
    ModelOptions options{name, 32, 10, true};
    options.sequence_length = 8;
    const auto model = make_model(options);
    const auto probe = std::make_shared<UseProbe>();
    model->set_gate(probe);
    gradient_ready_order(*model, at::kCPU);
    const std::vector<int> uses = probe->first_uses(*model);
    EXPECT_EQ(uses.size(), model->parameters().size());
    for (const int use : uses) EXPECT_GE(use, 0) << name;
  }
}

}  // namespace
}  // namespace scalemark::overlap_step_mpi_test
