// --kernels: what computes a training and an inference from end to end, optimizer and gradients
// included, is one set of operators, and both train to the same weights.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/recorded_operators.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/inferencer.hpp"
#include "train/trainer.hpp"

namespace scalemark::kernels_mpi_test {
namespace {

using testing::small_config;
using testing::world;

struct Trained {
  std::vector<double> loss;
  std::set<std::string> own, all;  ///< names of what ran
};

Trained train(const RunConfig& config) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator =
      make_communicator(CommunicatorKind::mpi, world(), -1, config.wire_dtype);
  const RecordedOperators record;
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  Trained result;
  result.loss = trainer.measure(world(), *communicator, nullptr).loss;
  result.own = record.own();
  result.all = record.all();
  return result;
}

RunConfig config_of(const char* model, Precision precision, Kernels kernels) {
  RunConfig config = small_config();
  config.model = model;
  config.precision = precision;
  config.kernels = kernels;
  config.clip_norm = 1;
  if (config.model != "smallnet") {
    config.num_batches = 3;
    config.init_learning_rate = 1e-4;
    config.dropout = 0;
  }
  return config;
}

class KernelsOfTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(KernelsOfTraining, AreLibTorchsAloneOrOurs) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Trained plain = train(config_of(GetParam(), precision, Kernels::torch));
    const Trained ours = train(config_of(GetParam(), precision, Kernels::scalemark));
    EXPECT_TRUE(plain.own.empty()) << *plain.own.begin();
    EXPECT_TRUE(ours.own.contains("scalemark::norm"));
    EXPECT_EQ(ours.own.contains("scalemark::adam"), std::string(GetParam()) != "smallnet");
    ASSERT_EQ(plain.loss.size(), ours.loss.size());
    const double tolerance = precision == Precision::fp32 ? 1e-3 : 3e-2;
    for (std::size_t i = 0; i < plain.loss.size(); ++i)
      EXPECT_NEAR(plain.loss[i], ours.loss[i], tolerance * plain.loss[i]) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Models, KernelsOfTraining,
                         ::testing::Values("smallnet", "transformer_tiny", "bert_tiny"));

TEST(KernelsOfTraining, DropOutWithLibTorchsOperators) {
  RunConfig config = config_of("transformer_tiny", Precision::bf16, Kernels::torch);
  config.dropout = 0.1;
  config.embedding_gradients = EmbeddingGradients::sparse_as_dense;
  const Trained plain = train(config);
  EXPECT_TRUE(plain.all.contains("aten::dropout"));
  // Rows of a table are handed over as such, which is communication, not a kernel.
  std::set<std::string> own = plain.own;
  std::erase_if(own, [](const std::string& name) { return name.find("Rows") != name.npos; });
  EXPECT_TRUE(own.empty()) << *own.begin();
}

TEST(KernelsOfInference, AreLibTorchsAloneOrFolded) {
  for (const Kernels kernels : {Kernels::torch, Kernels::scalemark}) {
    RunConfig config = small_config();
    config.model = "resnet18";
    config.image_size = 64;
    config.batch_size = 16;
    config.num_batches = 2;
    config.kernels = kernels;
    const auto device = make_device_backend(Device::cpu, 0);
    const RecordedOperators record;
    Inferencer inferencer(config, *device, world(), 16);
    inferencer.measure(world(), nullptr);
    const auto all = record.all();
    EXPECT_EQ(record.own().empty(), kernels == Kernels::torch);
    EXPECT_EQ(all.contains("aten::batch_norm"), kernels == Kernels::torch);
    EXPECT_EQ(all.contains("mkldnn::_convolution_pointwise"), kernels == Kernels::scalemark);
  }
}

}  // namespace
}  // namespace scalemark::kernels_mpi_test
