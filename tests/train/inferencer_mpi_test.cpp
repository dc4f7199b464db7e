// Inference on 1 to 4 ranks: every query is measured, ranks are independent, loops end as asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/mpi_support.hpp"
#include "train/inferencer.hpp"

namespace scalemark::inferencer_mpi_test {
namespace {

using testing::world;

RunConfig small_config() {
  RunConfig config;
  config.model = "smallnet";
  config.num_classes = 10;
  config.num_batches = 12;
  config.num_warmup_batches = 2;
  return config;
}

Samples measure(const RunConfig& config, const StepObserver& observer = nullptr) {
  const auto device = make_device_backend(Device::cpu, 0);
  return Inferencer(config, *device, world(), 2).measure(world(), observer);
}

TEST(Inferencer, MeasuresEveryQueryInBothModesAndPrecisions) {
  for (const InferenceMode mode : {InferenceMode::batch, InferenceMode::single_stream})
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      RunConfig config = small_config();
      config.mode = mode;
      config.precision = precision;
      const Samples samples = measure(config);
      EXPECT_EQ(samples.stop_reason, StopReason::num_batches);
      ASSERT_EQ(samples.step_seconds.size(), 12u);
      double sum = 0;
      for (const double seconds : samples.step_seconds) sum += seconds;
      EXPECT_GT(sum, 0);
      EXPECT_LE(sum, samples.wall_seconds);
      EXPECT_TRUE(samples.loss.empty());
    }
}

TEST(Inferencer, ObserverSeesEveryQuery) {
  std::vector<long> steps;
  measure(small_config(), [&](long step, double loss, const std::vector<double>& seconds) {
    steps.push_back(step);
    EXPECT_TRUE(std::isnan(loss));
    EXPECT_EQ(static_cast<long>(seconds.size()), step);
  });
  std::vector<long> all(small_config().num_batches);
  std::iota(all.begin(), all.end(), 1L);
  EXPECT_EQ(steps, all);
}

TEST(Inferencer, ServesWhatArrivesAloneOrInBatches) {
  RunConfig config = small_config();
  config.mode = InferenceMode::server;
  const auto device = make_device_backend(Device::cpu, 0);
  for (const std::int64_t batch : {1, 4}) {
    config.batch_size = batch;
    Inferencer inferencer(config, *device, world(), batch);
    EXPECT_EQ(inferencer.units_per_query(), 1);
    const auto pass = inferencer.warm_up_server(world());
    EXPECT_GT(pass.one, 0);
    EXPECT_GT(pass.full, 0);
    const std::vector<double> at_once(40, 0.);
    ServerPolicy policy;
    policy.largest_batch = batch;
    const Samples samples = inferencer.serve(world(), at_once, policy);
    ASSERT_EQ(samples.step_seconds.size(), 40u);
    EXPECT_EQ(samples.server->batches, 40 / batch);
    EXPECT_EQ(samples.server->queue_length_max, 40);
    for (std::size_t i = 0; i < 40; ++i)  // all wait for the first
      EXPECT_GE(samples.step_seconds[i], samples.server->queue_seconds[i]);
    EXPECT_EQ(samples.step_seconds.back(),
              *std::max_element(samples.step_seconds.begin(), samples.step_seconds.end()));
  }
}

TEST(Inferencer, Int8SaysHowFarItRounds) {
  const auto device = make_device_backend(Device::cpu, 0);
  RunConfig config = small_config();
  EXPECT_FALSE(Inferencer(config, *device, world(), 3).quantization());
  config.precision = Precision::int8;
  Inferencer int8(config, *device, world(), 3);
  ASSERT_TRUE(int8.quantization());
  EXPECT_EQ(int8.quantization()->layers, 4);
  EXPECT_GT(int8.quantization()->relative_error, 0);
  EXPECT_LT(int8.quantization()->relative_error, 0.15);
  EXPECT_EQ(int8.measure(world(), nullptr).step_seconds.size(), 12u);
}

TEST(Inferencer, SaysHowItIsFusedAndWhatAQueryIs) {
  const auto device = make_device_backend(Device::cpu, 0);
  RunConfig config = small_config();
  const Inferencer fused(config, *device, world(), 3);
  EXPECT_EQ(fused.fused(), "on");  // where the tests run LibTorch has oneDNN
  EXPECT_EQ(fused.units_per_query(), 3);
  EXPECT_EQ(fused.parameter_count(), 24'234);  // also where layers have given theirs up
  config.kernels = Kernels::torch;
  EXPECT_EQ(Inferencer(config, *device, world(), 3).fused(), "off");
}

TEST(Inferencer, EveryRankStopsByItself) {
  RunConfig config = small_config();
  config.num_batches = 1'000'000;
  config.max_seconds = 0.05 * (1 + world().rank());  // as no real configuration does
  const Samples samples = measure(config);
  EXPECT_EQ(samples.stop_reason, StopReason::max_seconds);
  EXPECT_GE(samples.wall_seconds, *config.max_seconds);
  const auto all = world().all_gather(std::to_string(samples.step_seconds.size()));
  EXPECT_GT(std::stoul(all.back()), 0u);
}

}  // namespace
}  // namespace scalemark::inferencer_mpi_test
