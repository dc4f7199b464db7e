// LibTorch's Reducer in place of scalemark's, on 1 and 2 ranks: the same training to rounding, its
// own buckets on the wire, and nothing left behind for the next measurement.
#include <gtest/gtest.h>

#include "config/names.hpp"
#include "error.hpp"
#include "tests/support/mpi_support.hpp"
#include "train/c10d_reducer.hpp"
#include "train/trainer.hpp"

namespace scalemark::c10d_mpi_test {
namespace {

using testing::world;

struct Case {
  std::string model;
  Optimizer optimizer;
  Precision precision;
  std::int64_t micro_batch_size;  ///< of a rank's batch of 4
};

RunConfig config_of(const Case& c) {
  RunConfig config;
  config.model = c.model;
  config.optimizer = c.optimizer;
  config.precision = c.precision;
  config.micro_batch_size = c.micro_batch_size;
  config.batch_size = 4;
  config.num_batches = 4;
  config.num_warmup_batches = 2;
  config.sequence_length = 16;
  config.bucket_mb = 0.05;  // several buckets
  config.first_bucket_mb = 0.02;
  if (c.model == "smallnet") config.num_classes = 10;
  const bool layerwise = c.optimizer == Optimizer::momentum || c.optimizer == Optimizer::lamb;
  config.init_learning_rate = layerwise ? 0.02 : 1e-3;
  return config;
}

std::unique_ptr<Communicator> communicator_of(const RunConfig& config, RankGroup& group) {
  if (config.reducer == Reducer::c10d) return make_c10d_communicator(group, -1);
  return make_communicator(CommunicatorKind::mpi, group, -1);
}

struct Trained {
  std::vector<double> loss;
  at::Tensor before, after;  ///< all weights, flat
  StepTraffic traffic;
  std::size_t flat_buckets;
  std::int64_t parameters;
};

at::Tensor weights_of(Trainer& trainer) {
  std::vector<at::Tensor> weights;
  for (const Bucket& bucket : trainer.parameters().buckets()) weights.push_back(bucket.weights);
  return at::cat(weights);
}

Trained train(RunConfig config, Reducer reducer, RankGroup& group) {
  config.reducer = reducer;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = communicator_of(config, group);
  Trainer trainer(config, *device, group, plan_batch(config, group.size()));
  trainer.check_data(*communicator, group.rank());
  Trained trained{{}, weights_of(trainer), {}, {}, 0, trainer.parameter_count()};
  trained.loss = trainer.measure(group, *communicator, nullptr).loss;
  trained.after = weights_of(trainer);
  trained.traffic = trainer.last_traffic();
  trained.flat_buckets = trainer.parameters().buckets().size();
  return trained;
}

class C10d : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!has_c10d()) GTEST_SKIP() << "this build has no c10d (libgloo-dev)";
  }
};

TEST_P(C10d, TrainsAsScalemarksReducer) {
  const RunConfig config = config_of(GetParam());
  const Trained ours = train(config, Reducer::scalemark, world());
  const Trained theirs = train(config, Reducer::c10d, world());
  const bool narrow = config.precision == Precision::bf16;
  ASSERT_EQ(theirs.loss.size(), 4u);
  for (std::size_t i = 0; i < theirs.loss.size(); ++i)
    EXPECT_NEAR(theirs.loss[i], ours.loss[i], (narrow ? 5e-3 : 1e-4) * ours.loss[i]);
  ASSERT_TRUE(at::equal(ours.before, theirs.before));
  const at::Tensor step = ours.after - ours.before;
  ASSERT_GT(step.norm().item<double>(), 0);
  // Adam's first steps are the signs of gradients, and some are nothing but rounding: those of the
  // biases of attention's keys, which do not change the loss.
  const bool adaptive = config.optimizer != Optimizer::momentum;
  EXPECT_LT(((theirs.after - ours.after).norm() / step.norm()).item<double>(), adaptive ? 0.2
                                                                               : narrow ? 0.05
                                                                                        : 1e-3);
}

TEST_P(C10d, AllRanksHoldTheSameWeights) {
  const Trained mine = train(config_of(GetParam()), Reducer::c10d, world());
  const std::string bytes(static_cast<const char*>(mine.after.const_data_ptr()),
                          mine.after.nbytes());
  for (const std::string& theirs : world().all_gather(bytes)) EXPECT_EQ(theirs == bytes, true);
}

TEST_P(C10d, EveryGradientTravelsOnceAndInTheBucketsThatWereAskedFor) {
  const Trained trained = train(config_of(GetParam()), Reducer::c10d, world());
  const std::int64_t ranks = world().size();
  EXPECT_EQ(trained.traffic.bytes, 4 * trained.parameters);
  EXPECT_EQ(trained.traffic.messages, static_cast<std::int64_t>(trained.flat_buckets));
  EXPECT_GT(trained.traffic.messages, 1);
  EXPECT_NEAR(static_cast<double>(trained.traffic.wire_bytes),
              2. * static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
                  static_cast<double>(trained.traffic.bytes),
              static_cast<double>(trained.traffic.messages));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, C10d,
    ::testing::Values(Case{"smallnet", Optimizer::momentum, Precision::fp32, 4},
                      Case{"smallnet", Optimizer::momentum, Precision::bf16, 2},
                      Case{"transformer_tiny", Optimizer::adam, Precision::fp32, 2},
                      Case{"transformer_tiny", Optimizer::adam, Precision::bf16, 4},
                      Case{"bert_tiny", Optimizer::lamb, Precision::fp32, 1},
                      Case{"bert_tiny", Optimizer::adamw, Precision::bf16, 2}),
    [](const auto& info) {
      return info.param.model + "_" + to_string(info.param.optimizer) + "_" +
             to_string(info.param.precision) + "_of_" + std::to_string(info.param.micro_batch_size);
    });

class C10dTrainer : public C10d {};

const Case kSmall{"smallnet", Optimizer::momentum, Precision::fp32, 4};
const Case kSmallBf16{"smallnet", Optimizer::momentum, Precision::bf16, 4};

// The baseline of a curve is measured with the same trainer, before and after.
TEST_P(C10dTrainer, LeavesTheTrainerAsItWas) {
  RunConfig config = config_of(GetParam());
  config.reducer = Reducer::c10d;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto gloo = make_c10d_communicator(world(), -1);
  const auto none = make_communicator(CommunicatorKind::none, world(), -1);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  trainer.keep_initial_weights();
  const auto before = trainer.measure(world(), *none, nullptr).loss;
  const Samples samples = trainer.measure(world(), *gloo, nullptr);
  EXPECT_EQ(trainer.measure(world(), *none, nullptr).loss, before);
  EXPECT_EQ(trainer.measure(world(), *gloo, nullptr).loss, samples.loss);
  ASSERT_EQ(samples.wait_seconds.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_LT(samples.wait_seconds[i], samples.step_seconds[i]) << "step " << i;
  EXPECT_GT(samples.communication_seconds, 0);
}

TEST_P(C10dTrainer, ClipsWhatIsSummed) {
  RunConfig config = config_of(GetParam());
  config.clip_norm = 0.05;
  const Trained ours = train(config, Reducer::scalemark, world());
  const Trained theirs = train(config, Reducer::c10d, world());
  const at::Tensor step = ours.after - ours.before;
  EXPECT_LT(((theirs.after - ours.after).norm() / step.norm()).item<double>(), 0.05);
}

TEST_P(C10dTrainer, SubgroupsHaveProcessGroupsOfTheirOwn) {
  const int half = std::max(1, world().size() / 2);
  auto group = world().split(world().rank() < half ? 0 : 1);
  ASSERT_TRUE(group.has_value());
  const RunConfig config = config_of(GetParam());
  const Trained ours = train(config, Reducer::scalemark, *group);
  const Trained theirs = train(config, Reducer::c10d, *group);
  for (std::size_t i = 0; i < theirs.loss.size(); ++i)
    EXPECT_NEAR(theirs.loss[i], ours.loss[i], 5e-3 * ours.loss[i]);
}

TEST_P(C10dTrainer, TheDataCheckGoesThroughTheProcessGroup) {
  RunConfig config = config_of(GetParam());
  config.inject = Injection{"corrupt_allreduce", 0, 0, 0};
  const auto device = make_device_backend(Device::cpu, 0);
  const auto gloo = make_c10d_communicator(world(), -1);
  EXPECT_EQ(gloo->name(), "gloo");
  EXPECT_EQ(gloo->size(), world().size());
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  if (world().rank() == 0)
    EXPECT_THROW(trainer.check_data(*gloo, 0), CommError);
  else
    EXPECT_NO_THROW(trainer.check_data(*gloo, world().rank()));
}

// A rank that comes late is waited for inside the backward pass.
TEST(C10dWait, IsThatForTheLastRank) {
  if (!has_c10d()) GTEST_SKIP() << "this build has no c10d (libgloo-dev)";
  const int last = world().size() - 1;
  RunConfig config = config_of(kSmall);
  config.reducer = Reducer::c10d;
  config.num_warmup_batches = 1;
  config.num_batches = 2;
  config.inject = Injection{"delay", last, 0, 100};
  const auto device = make_device_backend(Device::cpu, 0);
  const auto gloo = make_c10d_communicator(world(), -1);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  const Samples samples = trainer.measure(world(), *gloo, nullptr);
  ASSERT_EQ(samples.wait_seconds.size(), 2u);
  const double waited = samples.wait_seconds[0] + samples.wait_seconds[1];
  if (world().rank() != last)
    EXPECT_GT(waited, 0.02);  // a tenth of the delay: a busy machine makes all come late
  else
    EXPECT_LT(waited, samples.step_seconds[0] + samples.step_seconds[1] - 0.2);
}

INSTANTIATE_TEST_SUITE_P(Cases, C10dTrainer, ::testing::Values(kSmall, kSmallBf16),
                         [](const auto& info) { return to_string(info.param.precision); });

// An interface that is not there is refused on all ranks, with its name.
TEST(C10dRefusals, AnInterfaceThatIsNotThere) {
  if (!has_c10d()) GTEST_SKIP() << "this build has no c10d (libgloo-dev)";
  setenv("GLOO_SOCKET_IFNAME", "nothing0", 1);
  try {
    make_c10d_communicator(world(), -1);
    ADD_FAILURE() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("nothing0"), std::string::npos);
  }
  unsetenv("GLOO_SOCKET_IFNAME");
}

}  // namespace
}  // namespace scalemark::c10d_mpi_test
