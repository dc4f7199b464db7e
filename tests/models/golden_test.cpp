// Logits, loss and every gradient in float64 against values from an independent definition in plain
// PyTorch (scripts/golden/), with weights and inputs filled by the same formula: of every model
// that has a file in golden/.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/model.hpp"

namespace scalemark::golden_test {
namespace {

const std::string kFolder = SCALEMARK_SOURCE_DIR "/tests/models/golden/";

/// sin(0.1 i + 0.003 (i mod 997)^2 + phase) over the row-major index i.
at::Tensor wave(at::IntArrayRef shape, double phase) {
  at::Tensor i = at::arange(c10::multiply_integers(shape), at::kDouble);
  const at::Tensor square = at::remainder(i, 997).square_().mul_(0.003);
  return i.mul_(0.1).add_(square).add_(phase).sin_().view(shape);  // in place: of 100 million
}

void fill_by_formula(Model& model) {
  const at::NoGradGuard no_grad;
  double index = 0;
  for (auto& leaf : model.named_parameters()) {
    at::Tensor& value = leaf.value();
    const double fan_in = static_cast<double>(value.numel()) / static_cast<double>(value.size(0));
    const bool gamma = leaf.key().ends_with("norm.weight");
    if (value.dim() > 1)
      value.copy_(wave(value.sizes(), index).mul_(std::sqrt(3 / fan_in)));
    else
      value.copy_((gamma ? 1. : 0.) + 0.1 * wave(value.sizes(), index));
    ++index;
  }
}

/// Differences relative to `scale`, and the largest of them.
class Comparison {
 public:
  void expect_near(double found, double expected, double scale, const std::string& what) {
    EXPECT_NEAR(found, expected, 1e-10 * scale) << what;
    largest_ = std::max(largest_, std::abs(found - expected) / scale);
  }
  void expect_close(const at::Tensor& found, const nlohmann::json& norm_and_projection,
                    const std::string& what) {
    const double norm = norm_and_projection[0], projection = norm_and_projection[1];
    expect_near(found.norm().item<double>(), norm, norm, what);
    const at::Tensor projected = wave(found.sizes(), 0.5).mul_(found).sum();
    expect_near(projected.item<double>(), projection, norm, what);
  }
  double largest() const { return largest_; }

 private:
  double largest_ = 0;
};

nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(kFolder + name + ".json");
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

/// Tokens that are linear in their index modulo `modulus`, [count, columns].
at::Tensor linear(std::int64_t count, std::int64_t columns, std::int64_t factor,
                  std::int64_t offset, std::int64_t modulus) {
  return at::remainder(factor * at::arange(count * columns) + offset, modulus)
      .view({count, columns});
}

Batch images(const nlohmann::json& golden, bool channels_last) {
  const std::int64_t classes = golden["classes"], size = golden["image_size"],
                     count = golden["batch_size"];
  Batch batch;
  batch.inputs = 2 * wave({count, 3, size, size}, 0.25);
  if (channels_last) batch.inputs = batch.inputs.contiguous(at::MemoryFormat::ChannelsLast);
  batch.targets = at::remainder(7 * at::arange(count) + 3, classes);
  return batch;
}

Batch translations(const nlohmann::json& golden) {
  const std::int64_t vocabulary = golden["vocabulary"], length = golden["sequence_length"],
                     count = golden["batch_size"];
  Batch batch;
  batch.inputs = linear(count, length, 7, 3, vocabulary);
  batch.decoder_inputs = linear(count, length, 5, 1, vocabulary);
  batch.targets = linear(count, length, 3, 2, vocabulary);
  return batch;
}

Batch masked_sentences(const nlohmann::json& golden) {
  const std::int64_t vocabulary = golden["vocabulary"], length = golden["sequence_length"],
                     masked = golden["masked_positions"], count = golden["batch_size"];
  Batch batch;
  batch.inputs = linear(count, length, 7, 3, vocabulary);
  batch.segments = linear(count, length, 1, 0, length).ge(length / 2).to(at::kLong);
  batch.masked_positions = linear(count, masked, 2, 1, length);
  batch.targets = linear(count, masked, 5, 2, vocabulary);
  batch.next_sentence = at::arange(count).remainder(2);
  return batch;
}

struct Case {
  std::string model;
  bool channels_last = true;  ///< of images
  std::string layout = {};    ///< for the test's name
};

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, LogitsAndGradients) {
  const auto golden = read_golden(GetParam().model);
  const bool of_images = golden.contains("image_size");
  ModelOptions options;
  options.name = GetParam().model;
  options.channels_last = GetParam().channels_last;
  options.image_size = golden.value("image_size", 0);
  options.num_classes = golden.value("classes", 0);
  options.vocabulary = golden.value("vocabulary", 0);
  options.sequence_length = golden.value("sequence_length", 0);
  options.label_smoothing = 0.1;  // of translation
  const auto model = make_model(options);
  model->to(at::kDouble);
  fill_by_formula(*model);
  expect_golden(*model,
                of_images                             ? images(golden, options.channels_last)
                : golden.contains("masked_positions") ? masked_sentences(golden)
                                                      : translations(golden),
                golden);
}

/// Images in both layouts, but for networks that are built of what a smaller one is built of.
std::vector<Case> all_cases() {
  const std::set<std::string> like_smaller_ones{"resnet50", "vgg16"};
  std::vector<Case> cases;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const std::string model = file.path().stem();
    if (read_golden(model).contains("image_size")) {
      cases.push_back({model, true, "_channels_last"});
      if (!like_smaller_ones.contains(model)) cases.push_back({model, false, "_channels_first"});
    } else {
      cases.push_back({model});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.model + info.param.layout; });

TEST(GoldenModels, AreOfEveryKind) {
  std::set<std::string> models;
  for (const Case& one : all_cases()) models.insert(one.model);
  for (const char* model :
       {"resnet18", "resnet50", "vgg16", "alexnet", "inception3", "smallnet", "transformer_base",
        "bert_base", "gpt2", "llama_125m", "llama_tiny", "vit_b_16"})
    EXPECT_TRUE(models.contains(model)) << model;
}

}  // namespace
}  // namespace scalemark::golden_test
