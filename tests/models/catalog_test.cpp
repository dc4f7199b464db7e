// Holds every line of the catalog against the network itself: parameters, FLOPs of the operators
// that really run, and one training step.
#include "models/catalog.hpp"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "models/model.hpp"

namespace scalemark {
namespace {

std::shared_ptr<Model> make(const ModelFacts& facts, std::int64_t image_size) {
  torch::manual_seed(1);
  ModelOptions options;
  options.name = facts.name;
  options.image_size = image_size;
  return make_model(options);
}

/// 2 FLOPs per multiply-add of a convolution or matrix product, from the shapes that the operator
/// is called with.
double flops_of(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  const auto sizes = [](const c10::IValue& value) { return value.toTensor().sizes(); };
  const auto inputs = call.inputs();
  if (name == "aten::conv2d") {
    const auto weight = sizes(inputs[1]);
    return 2. * static_cast<double>(weight[1] * weight[2] * weight[3]) *
           static_cast<double>(call.outputs()[0].toTensor().numel());
  }
  if (name == "aten::linear")
    return 2. * static_cast<double>(sizes(inputs[1])[1]) *
           static_cast<double>(call.outputs()[0].toTensor().numel());
  return 0;
}

thread_local double counted_flops = 0;

double forward_flops(Model& model, const at::Tensor& inputs) {
  const at::NoGradGuard no_grad;
  counted_flops = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
          [](const at::RecordFunction& call, at::ObserverContext*) {
            counted_flops += flops_of(call);
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
  model.forward(inputs);
  at::removeCallback(handle);
  return counted_flops;
}

class Catalog : public ::testing::TestWithParam<ModelFacts> {};

TEST_P(Catalog, ParametersAreExact) {
  std::int64_t parameters = 0;
  for (const at::Tensor& leaf : make(GetParam(), GetParam().image_size)->parameters()) {
    EXPECT_EQ(leaf.scalar_type(), at::kFloat);
    parameters += leaf.numel();
  }
  EXPECT_EQ(GetParam().parameters, parameters);
}

TEST_P(Catalog, FlopsAreThoseOfTheOperatorsThatRun) {
  const auto model = make(GetParam(), GetParam().image_size);
  const Batch batch = model->synthetic_batch(1, 1, at::kCPU, at::kFloat);
  EXPECT_EQ(std::llround(GetParam().forward_flops_per_sample),
            std::llround(forward_flops(*model, batch.inputs)));
}

TEST_P(Catalog, TakesATrainingStep) {
  const auto model = make(GetParam(), 32);
  const Batch batch = model->synthetic_batch(2, 1, at::kCPU, at::kFloat);
  EXPECT_EQ(batch.units, 2);
  EXPECT_EQ(batch.loss_count, 2);
  const at::Tensor loss = model->loss_sum(batch);
  EXPECT_EQ(loss.dim(), 0);
  loss.backward();
  for (const auto& leaf : model->named_parameters()) {
    ASSERT_TRUE(leaf.value().grad().defined()) << leaf.key();
    EXPECT_TRUE(at::isfinite(leaf.value().grad()).all().item<bool>()) << leaf.key();
    EXPECT_GT(leaf.value().grad().norm().item<double>(), 0) << leaf.key();
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Catalog, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MakeModel, RefusesAnUnknownNameAndSaysWhatThereIs) {
  ModelOptions options;
  options.name = "resnet51";
  try {
    make_model(options);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'resnet51'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("resnet152, smallnet"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace scalemark
