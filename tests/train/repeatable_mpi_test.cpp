// A seed makes a run repeatable: the same ranks and threads give the same losses and weights bit
// for bit, and another seed gives others.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "config/names.hpp"
#include "tests/support/mpi_support.hpp"
#include "train/c10d_reducer.hpp"
#include "train/trainer.hpp"

namespace scalemark::repeatable_mpi_test {
namespace {

using testing::world;

struct Case {
  std::string model;
  Precision precision;
  Reducer reducer = Reducer::scalemark;
};

RunConfig config_of(const Case& c) {
  RunConfig config;
  config.model = c.model;
  config.precision = c.precision;
  config.reducer = c.reducer;
  config.batch_size = 2;
  config.num_batches = 3;
  config.num_warmup_batches = 1;
  config.init_learning_rate = 1e-3;
  if (c.model == "resnet18") config.image_size = 32;
  if (c.model == "smallnet") config.bucket_mb = 0.02;
  config.sequence_length = 16;
  // What a Transformer has by itself: masks are drawn in every layer.
  if (c.model == "transformer_tiny") config.dropout = 0.1;
  return config;
}

struct Trained {
  std::vector<double> loss;
  std::vector<at::Tensor> weights;
};

Trained train(const RunConfig& config) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = config.reducer == Reducer::c10d
                                ? make_c10d_communicator(world(), -1)
                                : make_communicator(CommunicatorKind::mpi, world(), -1);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  Trained trained{trainer.measure(world(), *communicator, nullptr).loss, {}};
  for (const Bucket& bucket : trainer.parameters().buckets())
    trained.weights.push_back(bucket.weights);
  return trained;
}

class Repeatable : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().reducer == Reducer::c10d && !has_c10d())
      GTEST_SKIP() << "this build has no c10d (libgloo-dev)";
    at::set_num_threads(2);
  }
  void TearDown() override { at::set_num_threads(threads_); }

 private:
  int threads_ = at::get_num_threads();
};

TEST_P(Repeatable, BitForBitWithTheSameSeedAlone) {
  RunConfig config = config_of(GetParam());
  const Trained first = train(config), second = train(config);
  config.seed += 1;
  const Trained other = train(config);
  ASSERT_EQ(first.loss.size(), 3u);
  EXPECT_EQ(first.loss, second.loss);
  for (std::size_t i = 0; i < first.loss.size(); ++i) EXPECT_NE(first.loss[i], other.loss[i]);
  ASSERT_EQ(first.weights.size(), second.weights.size());
  for (std::size_t i = 0; i < first.weights.size(); ++i) {
    EXPECT_TRUE(at::equal(first.weights[i], second.weights[i])) << "bucket " << i;
    EXPECT_FALSE(at::equal(first.weights[i], other.weights[i])) << "bucket " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Repeatable,
                         ::testing::Values(Case{"smallnet", Precision::fp32},
                                           Case{"smallnet", Precision::bf16},
                                           Case{"smallnet", Precision::fp32, Reducer::c10d},
                                           Case{"transformer_tiny", Precision::fp32},
                                           Case{"transformer_tiny", Precision::bf16},
                                           Case{"resnet18", Precision::fp32},
                                           Case{"resnet18", Precision::bf16}),
                         [](const auto& info) {
                           return info.param.model + "_" + to_string(info.param.precision) + "_" +
                                  to_string(info.param.reducer);
                         });

}  // namespace
}  // namespace scalemark::repeatable_mpi_test
