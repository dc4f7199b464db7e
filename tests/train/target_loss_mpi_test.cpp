// A target loss ends the loop on all ranks at the same step, one after the loss came down.
#include <gtest/gtest.h>

#include "measure/stopping.hpp"
#include "tests/support/mpi_support.hpp"
#include "train/trainer.hpp"

namespace scalemark::target_loss_mpi_test {
namespace {

using testing::world;

Samples train(std::optional<double> target_loss) {
  RunConfig config;
  config.model = "smallnet";
  config.num_classes = 10;
  config.batch_size = 4;
  config.num_batches = 30;
  config.num_warmup_batches = 2;
  config.init_learning_rate = 0.02;
  config.target_loss = target_loss;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator =
      make_communicator(CommunicatorKind::mpi, world(), -1, config.wire_dtype);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  return trainer.measure(world(), *communicator, nullptr);
}

TEST(TargetLoss, EndsTheLoopOnAllRanksOneStepLater) {
  const Samples whole = train(std::nullopt);
  ASSERT_EQ(whole.stop_reason, StopReason::num_batches);
  const double target = whole.loss[15];  // the loss falls: some steps before or after the 15th
  const Samples samples = train(target);
  const auto steps = steps_to_loss(samples.loss, target);
  ASSERT_TRUE(steps);
  EXPECT_EQ(samples.stop_reason, StopReason::target_loss);
  EXPECT_LT(*steps, 29u);
  EXPECT_EQ(samples.step_seconds.size(), *steps + 1);
  EXPECT_GT(samples.warm_up_seconds, 0);
  for (const auto& theirs : world().all_gather(std::to_string(samples.loss.size())))
    EXPECT_EQ(theirs, std::to_string(*steps + 1));
}

TEST(TargetLoss, ThatIsNotReachedLetsTheRunEnd) {
  const Samples samples = train(0.0);
  EXPECT_EQ(samples.stop_reason, StopReason::num_batches);
  EXPECT_EQ(samples.step_seconds.size(), 30u);
}

}  // namespace
}  // namespace scalemark::target_loss_mpi_test
