// Training on a real GPU, one rank: the same losses as on the CPU, in fp32 and bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "train/trainer.hpp"

namespace scalemark::trainer_gpu_test {
namespace {

class GpuTrainer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!torch::cuda::is_available()) return;
    watchdog = std::make_unique<Watchdog>(120);
    world = std::make_unique<RankGroup>(RankGroup::world(*watchdog));
  }
  static void TearDownTestSuite() {
    if (world) RankGroup::finalize(*world);
    world.reset();
    watchdog.reset();
  }
  void SetUp() override {
    if (!world) GTEST_SKIP() << "no GPU";
  }

  static RunConfig smallnet() {
    RunConfig config;
    config.model = "smallnet";
    config.num_classes = 10;
    return config;
  }

  static Samples train(Device device, Precision precision, CommunicatorKind kind,
                       RunConfig config = smallnet()) {
    config.num_batches = 10;
    config.num_warmup_batches = 0;
    config.init_learning_rate = 0.01;
    config.precision = precision;
    const auto backend = make_device_backend(device, 0);
    const auto communicator = make_communicator(kind, *world, device == Device::cuda ? 0 : -1);
    Trainer trainer(config, *backend, *world, {8, 8, 8});
    trainer.check_data(*communicator, 0);
    return trainer.measure(*world, *communicator, nullptr);
  }

  static void expect_near(const Samples& found, const Samples& expected, double tolerance) {
    ASSERT_EQ(found.loss.size(), expected.loss.size());
    ASSERT_EQ(found.step_seconds.size(), expected.step_seconds.size());
    for (std::size_t i = 0; i < found.loss.size(); ++i)
      EXPECT_NEAR(found.loss[i], expected.loss[i], tolerance * std::abs(expected.loss[i]))
          << "step " << i;
  }

  static inline std::unique_ptr<Watchdog> watchdog;
  static inline std::unique_ptr<RankGroup> world;
};

TEST_F(GpuTrainer, LossesAreThoseOfTheCpu) {
  const Samples cpu = train(Device::cpu, Precision::fp32, CommunicatorKind::none);
  expect_near(train(Device::cuda, Precision::fp32, CommunicatorKind::none), cpu, 1e-2);
  expect_near(train(Device::cuda, Precision::fp32, CommunicatorKind::nccl), cpu, 1e-2);
  expect_near(train(Device::cuda, Precision::bf16, CommunicatorKind::none), cpu, 5e-2);
}

/// On CUDA a lookup's gradient becomes rows only where these are collected.
TEST_F(GpuTrainer, EveryStrategyForEmbeddingGradientsGivesTheLossesOfDense) {
  RunConfig config;
  config.model = "transformer_tiny";
  config.sequence_length = 8;
  const Samples dense = train(Device::cuda, Precision::fp32, CommunicatorKind::nccl, config);
  for (const EmbeddingGradients gradients :
       {EmbeddingGradients::sparse, EmbeddingGradients::sparse_as_dense})
    for (const TiedGradient tied : {TiedGradient::dense, TiedGradient::sparse}) {
      config.embedding_gradients = gradients;
      config.tied_gradient = tied;
      expect_near(train(Device::cuda, Precision::fp32, CommunicatorKind::nccl, config), dense,
                  1e-2);
    }
}

/// One graph a step, with NCCL's operations in it, beside the same operations one by one.
TEST_F(GpuTrainer, RecordedStepsLearnAsThoseThatAreGivenOneByOne) {
  RunConfig sequence;
  sequence.model = "transformer_tiny";
  sequence.sequence_length = 8;
  sequence.dropout = 0.1;
  sequence.clip_norm = 1;
  for (const RunConfig& given : {smallnet(), sequence})
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16})
      for (const CommunicatorKind kind : {CommunicatorKind::none, CommunicatorKind::nccl}) {
        RunConfig config = given;
        const Samples one_by_one = train(Device::cuda, precision, kind, config);
        config.cuda_graph = CudaGraph::on;
        const Samples recorded = train(Device::cuda, precision, kind, config);
        expect_near(recorded, one_by_one, precision == Precision::fp32 ? 1e-3 : 2e-2);
        EXPECT_TRUE(std::isnan(recorded.wait_seconds.front()));
      }
}

/// Whether a step is left out is read by the device alone.
TEST_F(GpuTrainer, LayerwiseRulesLearnInFp16) {
  for (const Optimizer optimizer : {Optimizer::lamb, Optimizer::lars}) {
    RunConfig config = smallnet();
    config.optimizer = optimizer;
    const Samples cpu = train(Device::cpu, Precision::fp32, CommunicatorKind::none, config);
    expect_near(train(Device::cuda, Precision::fp16, CommunicatorKind::none, config), cpu, 5e-2);
  }
}

}  // namespace
}  // namespace scalemark::trainer_gpu_test
