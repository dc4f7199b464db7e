// Frozen layers compute what the others do: folding is exact in float64, fused operators round as
// fp32 and bf16 do. Norms are given statistics, gammas and betas that differ from their first ones.
#include "models/frozen.hpp"

#include <gtest/gtest.h>

#include "models/catalog.hpp"

namespace scalemark::frozen_test {
namespace {

struct Case {
  const char* name;
  bool channels_last = true;
};

std::shared_ptr<Model> make(const Case& which, at::ScalarType dtype) {
  torch::manual_seed(7);
  ModelOptions options;
  options.name = which.name;
  options.image_size = find_model(which.name)->smallest;
  options.num_classes = 10;
  options.channels_last = which.channels_last;
  options.sequence_length = 8;
  const auto model = make_model(options);
  const at::NoGradGuard no_grad;
  for (auto& buffer : model->named_buffers()) {
    if (buffer.key().ends_with("running_mean")) buffer.value().normal_(0.2, 0.3);
    if (buffer.key().ends_with("running_var")) buffer.value().uniform_(0.5, 2.);
  }
  for (auto& leaf : model->named_parameters())
    if (leaf.value().dim() == 1) leaf.value().add_(at::rand_like(leaf.value()) * 0.2);
  model->to(dtype);
  return model;
}

/// Logits of `count` samples; `frozen`: in which form.
enum class Form { whole, cast, frozen };
at::Tensor logits(const Case& which, at::ScalarType dtype, Form form, std::int64_t count = 3) {
  // Weights become bf16 in freeze(), as the inferencer does it.
  const auto master = dtype == at::kBFloat16 ? at::kFloat : dtype;
  const auto model = make(which, master);
  model->eval();
  if (form != Form::whole) freeze(*model, dtype, form == Form::frozen);
  const c10::InferenceMode inference;
  return model->forward(model->synthetic_batch(count, 5, at::kCPU, dtype));
}

/// Largest difference relative to the largest value.
double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class Frozen : public ::testing::TestWithParam<Case> {};

TEST_P(Frozen, FoldingIsExactInFloat64) {
  const at::Tensor whole = logits(GetParam(), at::kDouble, Form::whole);
  EXPECT_EQ(whole.scalar_type(), at::kDouble);
  EXPECT_LT(distance(logits(GetParam(), at::kDouble, Form::frozen), whole), 1e-12);
}

TEST_P(Frozen, FusedOperatorsRoundAsFp32Does) {
  const at::Tensor whole = logits(GetParam(), at::kFloat, Form::whole);
  const at::Tensor frozen = logits(GetParam(), at::kFloat, Form::frozen);
  EXPECT_EQ(frozen.scalar_type(), at::kFloat);
  EXPECT_LT(distance(frozen, whole), 1e-5);
}

TEST_P(Frozen, Bf16StaysNearFp32FusedOrNot) {
  const at::Tensor exact = logits(GetParam(), at::kFloat, Form::whole);
  const double cast = distance(logits(GetParam(), at::kBFloat16, Form::cast), exact);
  EXPECT_LT(cast, 0.05);
  EXPECT_GT(cast, 0);  // it did compute in bf16
  EXPECT_LT(distance(logits(GetParam(), at::kBFloat16, Form::frozen), exact), 0.05);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Frozen,
    ::testing::Values(Case{"resnet18"}, Case{"resnet18", false}, Case{"resnet50"}, Case{"alexnet"},
                      Case{"inception3"}, Case{"inception3", false}, Case{"smallnet"},
                      Case{"smallnet", false}, Case{"transformer_tiny"}, Case{"bert_tiny"}),
    [](const auto& info) {
      return std::string(info.param.name) + (info.param.channels_last ? "" : "_channels_first");
    });

TEST(FrozenModel, ServesOtherBatchSizesThanTheFirst) {
  const auto model = make({"resnet18"}, at::kFloat);
  freeze(*model, at::kFloat, true);
  const c10::InferenceMode inference;
  const Batch four = model->synthetic_batch(4, 5, at::kCPU, at::kFloat);
  const at::Tensor together = model->forward(four);  // packs for four
  for (const Batch& one : split(four, 1)) {
    const auto i = one.inputs.storage_offset() / one.inputs.numel();
    EXPECT_LT(distance(model->forward(one), together.narrow(0, i, 1)), 1e-5);
  }
}

/// The first pass takes no shares, the second one takes them where there are images enough.
TEST(FrozenModel, ComputesTheSameInShares) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto model = make({"resnet50"}, at::kFloat);
    freeze(*model, dtype, true);
    const c10::InferenceMode inference;
    const Batch batch = model->synthetic_batch(17, 5, at::kCPU, dtype);
    const at::Tensor whole = model->forward(batch);
    EXPECT_LT(distance(model->forward(batch), whole), dtype == at::kFloat ? 1e-5 : 0.05);
  }
  at::set_num_threads(before);
}

TEST(FrozenModel, LeavesItsInputAlone) {
  const auto model = make({"resnet18"}, at::kFloat);
  freeze(*model, at::kFloat, true);
  const c10::InferenceMode inference;
  const Batch batch = model->synthetic_batch(2, 5, at::kCPU, at::kFloat);
  const at::Tensor before = batch.inputs.clone();
  model->forward(batch);
  EXPECT_TRUE(at::equal(batch.inputs, before));
}

TEST(FrozenModel, GivesUpTheWeightsThatItNoLongerReads) {
  const auto model = make({"resnet18"}, at::kFloat);
  freeze(*model, at::kBFloat16, true);
  for (const auto& leaf : model->named_parameters()) {
    EXPECT_FALSE(leaf.value().requires_grad()) << leaf.key();
    if (leaf.value().dim() > 1) ADD_FAILURE() << leaf.key() << " is still there";
  }
}

TEST(ConvNorm, AddsTheResidualBeforeItClips) {
  for (const bool frozen : {false, true}) {
    torch::manual_seed(3);
    ConvNorm layer(std::make_shared<GateHolder>(), 8, 8, {});
    layer.eval();
    const c10::InferenceMode inference;
    const at::Tensor x = at::randn({2, 8, 5, 5}), residual = at::randn({2, 8, 5, 5});
    const at::Tensor expected = at::relu(layer.forward(x) + residual);
    if (frozen) layer.freeze(at::kFloat);
    EXPECT_LT(distance(layer.add_relu(x, residual.clone()), expected), 1e-5);
    EXPECT_LT(distance(layer.forward(x, Activation::relu), at::relu(layer.forward(x))), 1e-6);
  }
}

}  // namespace
}  // namespace scalemark::frozen_test
