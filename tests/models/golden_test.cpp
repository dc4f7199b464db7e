// Logits, loss and every gradient in float64 against values from an independent definition in plain
// PyTorch (scripts/golden/make_golden.py), with weights and inputs filled by the same formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/model.hpp"

namespace scalemark {
namespace {

/// sin(0.1 i + 0.003 (i mod 997)^2 + phase) over the row-major index i.
at::Tensor wave(at::IntArrayRef shape, double phase) {
  const at::Tensor i = at::arange(c10::multiply_integers(shape), at::kDouble);
  return at::sin(0.1 * i + 0.003 * at::remainder(i, 997).square() + phase).view(shape);
}

void fill_by_formula(Model& model) {
  const at::NoGradGuard no_grad;
  double index = 0;
  for (auto& leaf : model.named_parameters()) {
    at::Tensor& value = leaf.value();
    const double fan_in = static_cast<double>(value.numel()) / static_cast<double>(value.size(0));
    const bool gamma = leaf.key().ends_with("norm.weight");
    if (value.dim() > 1)
      value.copy_(std::sqrt(3 / fan_in) * wave(value.sizes(), index));
    else
      value.copy_((gamma ? 1. : 0.) + 0.1 * wave(value.sizes(), index));
    ++index;
  }
}

/// Differences relative to `scale`, and the largest of them.
class Comparison {
 public:
  void expect_near(double found, double expected, double scale, const std::string& what) {
    EXPECT_NEAR(found, expected, 1e-8 * scale) << what;
    largest_ = std::max(largest_, std::abs(found - expected) / scale);
  }
  void expect_close(const at::Tensor& found, const nlohmann::json& norm_and_projection,
                    const std::string& what) {
    const double norm = norm_and_projection[0], projection = norm_and_projection[1];
    expect_near(found.norm().item<double>(), norm, norm, what);
    const at::Tensor projected = (found * wave(found.sizes(), 0.5)).sum();
    expect_near(projected.item<double>(), projection, norm, what);
  }
  double largest() const { return largest_; }

 private:
  double largest_ = 0;
};

class Golden : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(SCALEMARK_SOURCE_DIR "/tests/models/golden/" + name + ".json");
  return nlohmann::json::parse(file);
}

/// Logits, loss and every gradient of `model`, filled by the formula, on `batch`.
void expect_golden(Model& model, const Batch& batch, const nlohmann::json& golden) {
  Comparison compare;
  {
    const at::NoGradGuard no_grad;
    compare.expect_close(model.forward(batch), golden["logits"], "logits");
  }
  const at::Tensor loss = model.loss_sum(batch);
  const double expected = golden["loss_sum"];
  compare.expect_near(loss.item<double>(), expected, expected, "loss");
  loss.backward();
  const auto leaves = model.named_parameters();
  ASSERT_EQ(leaves.size(), golden["gradients"].size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    compare.expect_close(leaves[i].value().grad(), golden["gradients"][i], leaves[i].key());
  // Shown by --gtest_output=json:FILE.
  ::testing::Test::RecordProperty("largest_relative_difference",
                                  (std::ostringstream() << compare.largest()).str());
}

TEST_P(Golden, LogitsAndGradients) {
  const auto& [name, channels_last] = GetParam();
  const auto golden = read_golden(name);
  const std::int64_t classes = golden["classes"], size = golden["image_size"],
                     count = golden["batch_size"];
  const auto model = make_model({name, size, classes, channels_last});
  model->to(at::kDouble);
  fill_by_formula(*model);

  Batch batch;
  batch.inputs = 2 * wave({count, 3, size, size}, 0.25);
  if (channels_last) batch.inputs = batch.inputs.contiguous(at::MemoryFormat::ChannelsLast);
  batch.targets = at::remainder(7 * at::arange(count) + 3, classes);
  expect_golden(*model, batch, golden);
}

TEST(GoldenTransformer, LogitsAndGradients) {
  const auto golden = read_golden("transformer_base");
  const std::int64_t vocabulary = golden["vocabulary"], length = golden["sequence_length"],
                     count = golden["batch_size"];
  ModelOptions options;
  options.name = "transformer_base";
  options.vocabulary = vocabulary;
  options.sequence_length = length;
  options.label_smoothing = 0.1;
  const auto model = make_model(options);
  model->to(at::kDouble);
  fill_by_formula(*model);

  const auto tokens = [&](std::int64_t factor, std::int64_t offset) {
    return at::remainder(factor * at::arange(count * length) + offset, vocabulary)
        .view({count, length});
  };
  Batch batch;
  batch.inputs = tokens(7, 3);
  batch.decoder_inputs = tokens(5, 1);
  batch.targets = tokens(3, 2);
  expect_golden(*model, batch, golden);
}

TEST(GoldenBert, LogitsAndGradients) {
  const auto golden = read_golden("bert_base");
  const std::int64_t vocabulary = golden["vocabulary"], length = golden["sequence_length"],
                     masked = golden["masked_positions"], count = golden["batch_size"];
  ModelOptions options;
  options.name = "bert_base";
  options.vocabulary = vocabulary;
  options.sequence_length = length;
  const auto model = make_model(options);
  model->to(at::kDouble);
  fill_by_formula(*model);

  const auto linear = [&](std::int64_t columns, std::int64_t factor, std::int64_t offset,
                          std::int64_t modulus) {
    return at::remainder(factor * at::arange(count * columns) + offset, modulus)
        .view({count, columns});
  };
  Batch batch;
  batch.inputs = linear(length, 7, 3, vocabulary);
  batch.segments = linear(length, 1, 0, length).ge(length / 2).to(at::kLong);
  batch.masked_positions = linear(masked, 2, 1, length);
  batch.targets = linear(masked, 5, 2, vocabulary);
  batch.next_sentence = at::arange(count).remainder(2);
  expect_golden(*model, batch, golden);
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden,
                         ::testing::Values(std::tuple("resnet18", true),
                                           std::tuple("resnet50", true),
                                           std::tuple("smallnet", true),
                                           std::tuple("resnet18", false)),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_channels_last" : "_channels_first");
                         });

}  // namespace
}  // namespace scalemark
