// int8 layers against fp32: no further than their scales allow, whatever passes between them.
#include "models/int8.hpp"

#include <gtest/gtest.h>

#include "models/catalog.hpp"
#include "models/frozen.hpp"

namespace scalemark::int8_test {
namespace {

class Int8 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_int8_operators()) GTEST_SKIP() << "this LibTorch has no int8 operators for this CPU";
  }
  const c10::InferenceMode inference_;
};

/// Largest difference relative to the largest value.
double apart(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor mine = a.is_quantized() ? a.dequantize() : a;
  return ((mine - b).abs().max() / b.abs().max()).item<double>();
}

ActivationRange range_of(const at::Tensor& x) {
  ActivationRange range;
  range.add(x);
  return range;
}

TEST_F(Int8, RangesHoldZeroAndWhatTheySaw) {
  const at::Tensor x = at::linspace(0.5, 2, 1000);
  const ActivationRange range = range_of(x);
  EXPECT_EQ(range.zero_point(), 0);
  EXPECT_GE(range.scale() * 255, 2);
  EXPECT_LE((range.quantized(x).dequantize() - x).abs().max().item<double>(),
            range.scale() / 2 + 1e-6);
  const ActivationRange both = range_of(at::linspace(-1, 3, 1000));
  EXPECT_EQ(both.quantized(at::zeros({1})).dequantize().item<double>(), 0);  // padding is exact
}

TEST_F(Int8, ConvolutionsFromFp32AndFromInt8) {
  torch::manual_seed(1);
  const at::Tensor x = at::randn({2, 16, 9, 9}), weight = at::randn({24, 16, 3, 3}) / 12;
  const at::Tensor bias = at::randn({24});
  for (const std::int64_t stride : {1, 2})
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const std::vector<std::int64_t> strides(2, stride), padding{1, 1};
      const at::Tensor exact = activated(at::conv2d(x, weight, bias, strides, padding), activation);
      const Int8Conv layer(weight, bias, strides, padding, range_of(x), range_of(exact));
      const at::Tensor made = layer.forward(x, activation);
      EXPECT_TRUE(made.is_quantized());
      EXPECT_LT(apart(made, exact), 0.03);
      EXPECT_TRUE(at::equal(layer.forward(range_of(x).quantized(x), activation).int_repr(),
                            made.int_repr()));
    }
}

TEST_F(Int8, AResidualIsAddedBeforeItClips) {
  torch::manual_seed(2);
  const at::Tensor x = at::randn({2, 8, 5, 5}), residual = at::randn({2, 8, 5, 5});
  const at::Tensor weight = at::randn({8, 8, 1, 1}) / 3, bias = at::randn({8});
  const at::Tensor exact = at::relu(at::conv2d(x, weight, bias) + residual);
  const Int8Conv layer(weight, bias, {1, 1}, {0, 0}, range_of(x), range_of(exact));
  const at::Tensor made = layer.add_relu(x, range_of(residual).quantized(residual));
  EXPECT_LT(apart(made, exact), 0.03);
}

TEST_F(Int8, ProductsTakeAndGiveFp32) {
  torch::manual_seed(3);
  const at::Tensor x = at::randn({3, 5, 64}), weight = at::randn({48, 64}) / 8;
  for (const bool with_bias : {true, false})
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
      std::optional<at::Tensor> bias;
      if (with_bias) bias = at::randn({48});
      const at::Tensor exact = activated(at::linear(x, weight, bias), activation);
      const at::Tensor made = Int8Linear(weight, bias).forward(x, activation);
      EXPECT_EQ(made.scalar_type(), at::kFloat);
      EXPECT_EQ(made.sizes(), exact.sizes());
      EXPECT_LT(apart(made, exact), 0.03);
    }
}

TEST_F(Int8, PartsOfUnlikeScalesAreJoinedAtTheCoarsest) {
  const at::Tensor small = at::rand({1, 4, 3, 3}), large = 50 * at::rand({1, 4, 3, 3});
  const at::Tensor exact = at::cat({small, large}, 1);
  const at::Tensor joined =
      concatenated({range_of(small).quantized(small), range_of(large).quantized(large)}, 1);
  EXPECT_LT(apart(joined, exact), 0.01);
  EXPECT_TRUE(at::equal(concatenated({small, large}, 1), exact));
}

class Int8Network : public ::testing::TestWithParam<const char*> {};

TEST_P(Int8Network, StaysNearFp32AlsoInOtherBatchesThanThatOfItsRanges) {
  if (!has_int8_operators()) GTEST_SKIP() << "this LibTorch has no int8 operators for this CPU";
  const auto make = [] {
    torch::manual_seed(7);
    ModelOptions options;
    options.name = GetParam();
    options.image_size = find_model(options.name)->smallest;
    options.num_classes = 10;
    options.sequence_length = 8;
    return make_model(options);
  };
  const auto exact = make(), int8 = make();
  freeze(*exact, at::kFloat, true);
  freeze(*int8, at::kQInt8, true);
  const c10::InferenceMode inference;
  const Quantization made = quantize(*int8, int8->synthetic_batch(4, 5, at::kCPU, at::kFloat));
  EXPECT_GT(made.layers, 0);
  EXPECT_GT(made.relative_error, 0);  // it did round
  EXPECT_LT(made.relative_error, 0.15);
  for (const std::int64_t samples : {1, 3}) {
    const Batch other = exact->synthetic_batch(samples, 6, at::kCPU, at::kFloat);
    const at::Tensor before = other.inputs.clone();
    EXPECT_LT(apart(int8->forward(other), exact->forward(other)), 0.2);
    EXPECT_TRUE(at::equal(other.inputs, before));
  }
  for (const auto& leaf : int8->named_parameters()) EXPECT_FALSE(leaf.value().requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Networks, Int8Network,
                         ::testing::Values("resnet18", "resnet50", "vgg16", "alexnet", "inception3",
                                           "smallnet", "trivial", "transformer_tiny", "bert_tiny"));

}  // namespace
}  // namespace scalemark::int8_test
