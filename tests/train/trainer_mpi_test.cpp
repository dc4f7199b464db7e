// The trainer as a whole, on 1 to 4 ranks: reproducible, agreed stops, faults found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <numeric>

#include "error.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/trainer.hpp"

namespace scalemark::trainer_mpi_test {
namespace {

using testing::small_config;
using testing::world;

BatchPlan plan() { return plan_batch(small_config(), world().size()); }

struct TrainedRun {
  Samples samples;
  std::vector<at::Tensor> weights;
};

TrainedRun run(const RunConfig& config, CommunicatorKind kind = CommunicatorKind::mpi,
               StepObserver observer = nullptr, int measurements = 1) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(kind, world(), -1, config.wire_dtype);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  if (measurements > 1) trainer.keep_initial_weights();
  TrainedRun result;
  for (int i = 0; i < measurements; ++i)
    result.samples = trainer.measure(world(), *communicator, observer);
  for (const Bucket& bucket : trainer.parameters().buckets())
    result.weights.push_back(bucket.weights);
  return result;
}

void expect_equal_weights(const TrainedRun& a, const TrainedRun& b) {
  for (std::size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_TRUE(at::allclose(a.weights[i], b.weights[i], 1e-4, 1e-6));
}

TEST(Trainer, MeasuresEveryStepAndTheLossFalls) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    RunConfig config = small_config();
    config.precision = precision;
    const Samples samples = run(config).samples;
    EXPECT_EQ(samples.stop_reason, StopReason::num_batches);
    EXPECT_EQ(samples.step_seconds.size(), 12u);
    EXPECT_EQ(samples.wait_seconds.size(), 12u);
    ASSERT_EQ(samples.loss.size(), 12u);
    EXPECT_LT(samples.loss.back(), samples.loss.front());
    EXPECT_GT(samples.wall_seconds, 0);
  }
}

TEST(Trainer, TellsWhereItsStepsGo) {
  RunConfig config = small_config();
  const Samples samples = run(config).samples;
  const auto of = [](const Samples& all, StepPhase phase) {
    return all.phase_seconds[static_cast<std::size_t>(phase)];
  };
  const auto sum = [](const auto& list) { return std::accumulate(list.begin(), list.end(), 0.); };
  // The clocks are read one after the other.
  EXPECT_NEAR(sum(samples.phase_seconds), sum(samples.step_seconds),
              1e-3 + 0.01 * sum(samples.step_seconds));
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward, StepPhase::optimizer})
    EXPECT_GT(of(samples, phase), 0);
  // Of what a step waits for, the reducer's part is communication, the rest the agreement's.
  EXPECT_LE(sum(samples.wait_seconds),
            of(samples, StepPhase::communication) + of(samples, StepPhase::agreement) + 1e-3);

  config.forward_only = true;
  const Samples forward = run(config, CommunicatorKind::none).samples;
  EXPECT_GT(of(forward, StepPhase::forward), 0);
  EXPECT_EQ(of(forward, StepPhase::backward), 0);
  EXPECT_EQ(of(forward, StepPhase::optimizer), 0);
}

TEST(Trainer, AWaitForALateRankIsCommunication) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  RunConfig config = small_config();
  config.inject = parse_injection("delay:rank=0:milliseconds=20");
  const Samples samples = run(config).samples;
  const auto seconds = [&](StepPhase phase) {
    return samples.phase_seconds[static_cast<std::size_t>(phase)];
  };
  // The delay itself lies between the steps of rank 0.
  const StepPhase late = world().rank() == 0 ? StepPhase::rest : StepPhase::communication;
  EXPECT_GT(seconds(late), 0.75 * 12 * 0.020);
}

TEST(Trainer, Fp16FollowsFp32WithItsLossScaled) {
  RunConfig config = small_config();
  const Samples exact = run(config).samples;
  EXPECT_FALSE(exact.loss_scaling);
  config.precision = Precision::fp16;
  const Samples half = run(config).samples;
  for (std::size_t i = 0; i < exact.loss.size(); ++i)
    EXPECT_NEAR(half.loss[i], exact.loss[i], 0.01 * exact.loss[i]);
  ASSERT_TRUE(half.loss_scaling);
  EXPECT_EQ(half.loss_scaling->skipped_steps, 0);
}

TEST(Trainer, Fp16LeavesOutStepsThatOverflowAndGoesOn) {
  RunConfig config = small_config();
  config.precision = Precision::fp16;
  config.fp16_loss_scale = 1 << 24;
  config.num_batches = 20;
  const TrainedRun dynamic = run(config);
  EXPECT_EQ(dynamic.samples.stop_reason, StopReason::num_batches);
  EXPECT_GT(dynamic.samples.loss_scaling->skipped_steps, 0);
  EXPECT_LT(dynamic.samples.loss_scaling->last, 1 << 24);
  EXPECT_LT(dynamic.samples.loss.back(), dynamic.samples.loss.front());
  config.fp16_enable_auto_loss_scale = false;
  const Samples fixed = run(config).samples;
  EXPECT_EQ(fixed.loss_scaling->skipped_steps, 22);  // the warm-up's too
  EXPECT_EQ(fixed.loss.back(), fixed.loss.front());
}

TEST(Trainer, AllRanksHoldTheSameWeightsAndLosses) {
  const TrainedRun mine = run(small_config());
  for (const at::Tensor& weights : mine.weights) {
    const std::string bytes(static_cast<const char*>(weights.const_data_ptr()), weights.nbytes());
    for (const std::string& theirs : world().all_gather(bytes)) EXPECT_EQ(theirs == bytes, true);
  }
  for (const std::string& theirs : world().all_gather(std::to_string(mine.samples.loss.back())))
    EXPECT_EQ(theirs, std::to_string(mine.samples.loss.back()));
}

TEST(Trainer, TheSeedDecidesTheLosses) {
  RunConfig config = small_config();
  const TrainedRun first = run(config), second = run(config),
                   again = run(config, CommunicatorKind::mpi, nullptr, 2);
  expect_equal_weights(first, second);
  expect_equal_weights(first, again);  // a second measurement starts where the first one did
  for (std::size_t i = 0; i < first.samples.loss.size(); ++i)
    EXPECT_NEAR(first.samples.loss[i], second.samples.loss[i], 1e-5);
  config.seed = 77;
  EXPECT_NE(run(config).samples.loss.front(), first.samples.loss.front());
}

TEST(Trainer, ObserverSeesEveryStep) {
  std::vector<long> steps;
  const Samples samples =
      run(small_config(), CommunicatorKind::mpi, [&](long step, double loss, const auto& seconds) {
        steps.push_back(step);
        EXPECT_GT(loss, 0);
        EXPECT_GE(static_cast<long>(seconds.size()), step);
      }).samples;
  std::vector<long> all(small_config().num_batches);
  std::iota(all.begin(), all.end(), 1L);
  EXPECT_EQ(steps, all);
}

void expect_learning(const std::string& model, Optimizer optimizer, double first_loss) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    RunConfig config = small_config();
    config.model = model;
    config.optimizer = optimizer;
    config.init_learning_rate = optimizer == Optimizer::lamb ? 1e-2 : 1e-3;
    config.precision = precision;
    config.num_warmup_batches = 0;  // the first loss is one before any update
    config.num_batches = 6;
    const TrainedRun first = run(config), again = run(config);
    EXPECT_LT(first.samples.loss.back(), first.samples.loss.front());
    EXPECT_NEAR(first.samples.loss.front(), first_loss, 1.0);
    EXPECT_EQ(first.samples.loss, again.samples.loss);  // dropout's masks come from the seed too
  }
}

// The first loss is that of a guess among the words of the vocabulary, and of two next sentences.
TEST(Trainer, TransformerLearnsInEveryPrecisionAndRepeatsItself) {
  expect_learning("transformer_tiny", Optimizer::adam, std::log(1024.));
}

TEST(Trainer, BertLearnsInEveryPrecisionAndRepeatsItself) {
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::lamb})
    expect_learning("bert_tiny", optimizer, std::log(1024.) + std::log(2.));
}

RunConfig unequal_sequences() {
  RunConfig config = small_config();
  config.model = "transformer_tiny";
  config.optimizer = Optimizer::adam;
  config.init_learning_rate = 1e-3;
  config.dropout = 0;
  config.length_distribution = LengthDistribution::lognormal;
  return config;
}

TEST(Trainer, UnitsAreTheTokensOfEveryStep) {
  const Samples samples = run(unequal_sequences()).samples;
  ASSERT_EQ(samples.units.size(), 12u);
  EXPECT_NE(std::ranges::min(samples.units), std::ranges::max(samples.units));
  EXPECT_GT(samples.padded_units, std::accumulate(samples.units.begin(), samples.units.end(), 0.));
}

TEST(Trainer, OverlapLeavesTheSameWeightsBitForBit) {
  RunConfig config = small_config();
  config.overlap = Overlap::none;
  const TrainedRun after = run(config);
  config.overlap = Overlap::backward;
  const TrainedRun during = run(config);
  for (std::size_t i = 0; i < after.weights.size(); ++i)
    EXPECT_TRUE(at::equal(after.weights[i], during.weights[i])) << "bucket " << i;
}

TEST(Trainer, NarrowGradientsOnTheWireLearnTheSame) {
  RunConfig config = small_config();
  const auto exact = run(config).samples.loss;
  config.wire_dtype = WireDtype::bf16;
  const auto narrow = run(config).samples.loss;
  ASSERT_EQ(narrow.size(), exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(narrow[i], exact[i], 0.02 * exact[i]);
}

TEST(Trainer, WithoutCommunicationEveryRankTrainsByItself) {
  const Samples samples = run(small_config(), CommunicatorKind::none).samples;
  EXPECT_EQ(samples.step_seconds.size(), 12u);
  EXPECT_LT(samples.loss.back(), samples.loss.front());
  EXPECT_EQ(samples.communication_seconds, 0);
}

TEST(Trainer, ForwardOnlyLeavesTheWeights) {
  RunConfig config = small_config();
  config.forward_only = true;
  const auto device = make_device_backend(Device::cpu, 0);
  Trainer trainer(config, *device, world(), plan());
  const at::Tensor before = trainer.parameters().buckets()[0].weights.clone();
  const auto communicator = make_communicator(CommunicatorKind::none, world(), -1);
  const Samples samples = trainer.measure(world(), *communicator, nullptr);
  EXPECT_TRUE(at::equal(before, trainer.parameters().buckets()[0].weights));
  EXPECT_EQ(samples.loss.front(), samples.loss.back());
}

TEST(Trainer, ALossThatIsNotFiniteOnOneRankStopsAll) {
  for (const std::int64_t step : {0, 5, 13}) {  // warm-up, loop, last step
    RunConfig config = small_config();
    config.inject = Injection{"nan_loss", world().size() - 1, step, 0};
    const Samples samples = run(config).samples;
    EXPECT_EQ(samples.stop_reason, StopReason::non_finite) << "step " << step;
    EXPECT_LT(static_cast<std::int64_t>(samples.step_seconds.size()),
              std::max<std::int64_t>(1, step + 1));
    for (const double loss : samples.loss) EXPECT_TRUE(std::isfinite(loss));
  }
}

TEST(Trainer, StopsAllRanksAfterMaxSeconds) {
  RunConfig config = small_config();
  config.num_batches = 1'000'000;
  config.max_seconds = 0.05;
  const Samples samples = run(config).samples;
  EXPECT_EQ(samples.stop_reason, StopReason::max_seconds);
  for (const auto& theirs : world().all_gather(std::to_string(samples.step_seconds.size())))
    EXPECT_EQ(theirs, std::to_string(samples.step_seconds.size()));
}

TEST(Trainer, DataCheckPassesAndFindsACorruptedElement) {
  RunConfig config = small_config();
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Trainer trainer(config, *device, world(), plan());
  EXPECT_NO_THROW(trainer.check_data(*communicator, world().rank()));
  config.inject = Injection{"corrupt_allreduce", 0, 0, 0};
  Trainer corrupted(config, *device, world(), plan());
  if (world().rank() == 0) {
    EXPECT_THROW(corrupted.check_data(*communicator, world().rank()), CommError);
  } else {
    EXPECT_NO_THROW(corrupted.check_data(*communicator, world().rank()));
  }
}

TEST(Trainer, BatchSizeCanChangeBetweenPoints) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Trainer trainer(small_config(), *device, world(), plan());
  EXPECT_EQ(trainer.units_per_step_of_rank(), 4);
  trainer.set_batch({8, 8 * world().size(), 2});  // and in micro-batches
  EXPECT_EQ(trainer.units_per_step_of_rank(), 8);
  trainer.keep_initial_weights();
  EXPECT_EQ(trainer.measure(world(), *communicator, nullptr).step_seconds.size(), 12u);
  EXPECT_GT(trainer.calibrate(world()), 0);
}

TEST(Trainer, ASignalOnOneRankStopsAllAtAStepBoundary) {
  install_stop_signals();
  RunConfig config = small_config();
  config.num_batches = 1'000'000;
  const auto on_step = [](long step, double, const std::vector<double>&) {
    if (step == 5 && world().rank() == 0) std::raise(SIGUSR1);
  };
  const Samples samples = run(config, CommunicatorKind::mpi, on_step).samples;
  EXPECT_EQ(samples.stop_reason, StopReason::signal);
  EXPECT_LT(samples.step_seconds.size(), 10u);
  EXPECT_EQ(stop_requested(), world().rank() == 0);
  install_stop_signals();  // the flag is unset again
}

}  // namespace
}  // namespace scalemark::trainer_mpi_test
