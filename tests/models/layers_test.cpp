// What layers promise beside their arithmetic: the gate is passed, memory formats stay, seeds
// decide everything.
#include "models/layers.hpp"

#include <gtest/gtest.h>

#include <set>

namespace scalemark::layers_test {
namespace {

/// Notes what passes, and computes with a doubled weight.
class DoublingGate : public ParameterGate {
 public:
  void before_use(at::TensorList parameters) override {
    for (const at::Tensor& leaf : parameters) seen.insert(leaf.unsafeGetTensorImpl());
  }
  at::Tensor compute_weight(const at::Tensor& leaf) override { return 2 * leaf; }
  std::set<const c10::TensorImpl*> seen;
};

ModelOptions small_options() { return {"smallnet", 32, 10, true}; }

TEST(Layers, EveryParameterPassesTheGate) {
  for (const char* name : {"resnet18", "alexnet", "inception3", "smallnet", "trivial",
                           "transformer_tiny", "bert_tiny"}) {
    const auto model = make_model({name, 75, 10, true});
    const auto gate = std::make_shared<DoublingGate>();
    model->set_gate(gate);
    model->forward(model->synthetic_batch(2, 1, at::kCPU, at::kFloat));
    for (const auto& leaf : model->named_parameters())
      EXPECT_TRUE(gate->seen.contains(leaf.value().unsafeGetTensorImpl()))
          << name << " " << leaf.key();
  }
}

TEST(Layers, ComputeWithTheWeightThatTheGateGives) {
  const auto holder = std::make_shared<GateHolder>();
  Linear linear(holder, 4, 3);
  const at::Tensor x = at::randn({2, 4});
  const at::Tensor once = linear.forward(x) - linear.named_parameters()["bias"];
  holder->gate = std::make_shared<DoublingGate>();
  const at::Tensor twice = linear.forward(x) - linear.named_parameters()["bias"];
  EXPECT_TRUE(at::allclose(twice, 2 * once));
}

TEST(Layers, ChannelsLastStaysChannelsLast) {
  const auto holder = std::make_shared<GateHolder>();
  Conv2d conv(holder, 8, 16, {});
  EXPECT_TRUE(conv.parameters()[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor x = at::randn({2, 8, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(conv.forward(x).is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(Layers, ActivationsFollowTheComputeDtype) {
  const auto holder = std::make_shared<GateHolder>();
  BatchNorm2d norm(holder, 8);
  const at::Tensor x = at::randn({2, 8, 6, 6}).to(at::kBFloat16);
  EXPECT_EQ(norm.forward(x).scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm.parameters()[0].scalar_type(), at::kFloat);
}

TEST(Layers, KaimingNormalKeepsTheVarianceOfGradients) {
  torch::manual_seed(3);
  Conv2d conv(std::make_shared<GateHolder>(), 64, 128, {});
  const double expected = std::sqrt(2. / (128 * 3 * 3));
  EXPECT_NEAR(conv.parameters()[0].std().item<double>(), expected, 0.01 * expected);
}

TEST(Layers, TruncatedNormalStopsAtTwoDeviations) {
  torch::manual_seed(3);
  const at::Tensor x = truncated_normal({1000, 1000});
  EXPECT_LE(x.abs().max().item<double>(), 0.04 + 1e-6);
  // Standard deviation of the normal distribution cut at +-2: sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
  EXPECT_NEAR(x.std().item<double>(), 0.02 * 0.879626, 2e-5);
  EXPECT_NEAR(x.mean().item<double>(), 0, 1e-4);
}

TEST(Parameters, AreDrawnInPiecesThatAreUnlike) {
  torch::manual_seed(3);
  const std::int64_t piece = 1 << 18;
  const at::Tensor uniform = uniform_parameter({4, piece}, 0.5);
  EXPECT_LE(uniform.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(uniform.std().item<double>(), 0.5 / std::sqrt(3.), 1e-3);
  const at::Tensor normal = normal_parameter({4, piece}, 0.02);
  EXPECT_NEAR(normal.std().item<double>(), 0.02, 1e-4);
  EXPECT_NEAR(normal.mean().item<double>(), 0, 1e-4);
  for (const at::Tensor& drawn : {uniform, normal}) {
    const at::Tensor likeness = at::corrcoef(drawn) - at::eye(4);
    EXPECT_LT(likeness.abs().max().item<double>(), 0.01);  // 5 deviations of unlike ones
  }
  EXPECT_FALSE(at::equal(normal, normal_parameter({4, piece}, 0.02)));
}

TEST(Parameters, AreTheSameForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto drawn_by = [](int count) {
    at::set_num_threads(count);
    torch::manual_seed(3);
    return at::cat({uniform_parameter({1'000'003}, 1), normal_parameter({1'000'003}, 1),
                    truncated_normal({1'000'003})});
  };
  const at::Tensor one = drawn_by(1);
  EXPECT_TRUE(at::equal(one, drawn_by(2)));
  EXPECT_TRUE(at::equal(one, drawn_by(5)));
  at::set_num_threads(threads);
}

TEST(SyntheticBatch, IsDecidedByItsSeed) {
  const auto model = make_model(small_options());
  const Batch a = model->synthetic_batch(4, 7, at::kCPU, at::kFloat);
  const Batch b = model->synthetic_batch(4, 7, at::kCPU, at::kFloat);
  const Batch other = model->synthetic_batch(4, 8, at::kCPU, at::kFloat);
  EXPECT_TRUE(at::equal(a.inputs, b.inputs));
  EXPECT_TRUE(at::equal(a.targets, b.targets));
  EXPECT_FALSE(at::equal(a.inputs, other.inputs));
  EXPECT_TRUE(a.inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(model->synthetic_batch(4, 7, at::kCPU, at::kBFloat16).inputs.scalar_type(),
            at::kBFloat16);
}

TEST(Weights, AreDecidedByTheSeed) {
  const auto weights = [](std::uint64_t seed, bool channels_last = true) {
    torch::manual_seed(seed);
    return make_model({"smallnet", 32, 10, channels_last})->parameters()[0].clone();
  };
  EXPECT_TRUE(at::equal(weights(5), weights(5, false)));
  EXPECT_TRUE(at::equal(weights(5), weights(5)));
  EXPECT_FALSE(at::equal(weights(5), weights(6)));
}

TEST(Loss, IsTheSumOverSamples) {
  const auto model = make_model(small_options());
  const Batch both = model->synthetic_batch(2, 7, at::kCPU, at::kFloat);
  double sum = 0;
  for (int i = 0; i < 2; ++i)
    sum += model->loss_sum({both.inputs.narrow(0, i, 1), both.targets.narrow(0, i, 1), 1, 1})
               .item<double>();
  EXPECT_NEAR(model->loss_sum(both).item<double>(), sum, 1e-5);
}

}  // namespace
}  // namespace scalemark::layers_test
