// The learnable tasks: samples by number, targets a function of the inputs.
#include "models/synthetic_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "error.hpp"
#include "models/catalog.hpp"
#include "models/model.hpp"

namespace scalemark::learnable_test {
namespace {

std::shared_ptr<Model> make(const std::string& name) {
  torch::manual_seed(1);
  ModelOptions options{name, 32, 20, true};
  options.sequence_length = 7;
  return make_model(options);
}

Batch draw(Model& model, const SampleRange& samples, std::uint64_t seed = 5) {
  return model.learnable_batch(samples, seed, at::kCPU, at::kFloat);
}

class Learnable : public ::testing::TestWithParam<std::string> {};

TEST_P(Learnable, RangesAreSlicesOfOneSequenceOfSamples) {
  const auto model = make(GetParam());
  const Batch whole = draw(*model, {30, 6}), part = draw(*model, {33, 2});
  const Batch slice = split(whole, 2)[1];
  EXPECT_FALSE(at::equal(part.inputs, slice.inputs));  // samples 32 and 33
  EXPECT_TRUE(at::equal(part.inputs[0], slice.inputs[1]));
  EXPECT_TRUE(at::equal(part.targets[0], slice.targets[1]));
  EXPECT_EQ(part.units, slice.units);
  EXPECT_EQ(part.loss_count, slice.loss_count);
  EXPECT_FALSE(at::equal(draw(*model, {30, 6}, 6).inputs, whole.inputs));  // another seed
  EXPECT_TRUE(model->loss_sum(part).isfinite().item<bool>());
}

TEST_P(Learnable, BatchesLookLikeTheNoiseThatTheyReplace) {
  const auto model = make(GetParam());
  const Batch noise = model->synthetic_batch(3, 1, at::kCPU, at::kBFloat16);
  const Batch task = model->learnable_batch({0, 3}, 1, at::kCPU, at::kBFloat16);
  for (const auto& [a, b] : {std::pair{noise.inputs, task.inputs}, {noise.targets, task.targets}}) {
    EXPECT_EQ(a.sizes(), b.sizes());
    EXPECT_EQ(a.strides(), b.strides());
    EXPECT_EQ(a.scalar_type(), b.scalar_type());
  }
  EXPECT_EQ(noise.decoder_inputs.defined(), task.decoder_inputs.defined());
  EXPECT_EQ(noise.units, task.units);
}

INSTANTIATE_TEST_SUITE_P(Models, Learnable,
                         ::testing::Values("smallnet", "trivial", "resnet18", "transformer_tiny"),
                         [](const auto& info) { return info.param; });

TEST(LearnableImages, OfOneClassShareAPatternWhateverTheSeed) {
  const ModelOptions options{"smallnet", 32, 20, true};
  const auto class_means = [&](std::uint64_t seed) {
    const Batch batch = learnable_images(options, {0, 400}, seed, at::kCPU, at::kFloat);
    EXPECT_EQ(batch.targets.min().item<int>(), 0);
    EXPECT_EQ(batch.targets.max().item<int>(), 9);  // of 20 classes ten are used
    std::vector<at::Tensor> means;
    for (int label = 0; label < 10; ++label)
      means.push_back(batch.inputs.index({batch.targets == label}).mean(0).flatten());
    return at::stack(means);
  };
  const at::Tensor a = class_means(1), b = class_means(2);
  const at::Tensor alike = at::corrcoef(at::cat({a, b})).slice(0, 0, 10).slice(1, 10, 20);
  EXPECT_GT(alike.diag().min().item<double>(), 0.9);
  EXPECT_LT((alike - at::eye(10) * 2).max().item<double>(), 0.4);
}

TEST(LearnableTokens, AreTranslatedByAPermutation) {
  for (const std::int64_t vocabulary : {2, 8, 65, 1024}) {
    const std::int64_t alphabet = vocabulary == 2 ? 1 : vocabulary == 8 ? 4 : 64;
    const at::Tensor all = at::arange(1, alphabet + 1);
    const at::Tensor translated = learnable_translation(all, vocabulary);
    EXPECT_TRUE(at::equal(std::get<0>(translated.sort()), all)) << vocabulary;
    const at::Tensor drawn = at::stack(learnable_sequences({0, 300}, {}, 4, vocabulary, 1));
    EXPECT_EQ(drawn.min().item<int>(), 1);
    EXPECT_EQ(drawn.max().item<int>(), alphabet);
  }
  EXPECT_FALSE(at::equal(learnable_translation(at::arange(1, 65), 1024), at::arange(1, 65)));
}

TEST(LearnableTask, AModelWithoutOneSaysSo) {
  struct Without : Model {
    Batch synthetic_batch(std::int64_t, std::uint64_t, at::Device, at::ScalarType) override {
      return {};
    }
    at::Tensor loss_sum(const Batch&) override { return {}; }
    at::Tensor forward(const Batch&) override { return {}; }
  };
  Without model;
  EXPECT_THROW(draw(model, {0, 1}), ConfigError);
}

}  // namespace
}  // namespace scalemark::learnable_test

// Sequences of varying length: the distribution is the stated one, and padding changes nothing.
namespace scalemark::lengths_test {
namespace {

std::vector<std::int64_t> draw(const Lengths& lengths, std::int64_t longest) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < 4000; ++i) drawn.push_back(lengths.draw(longest, generator));
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

TEST(Lengths, FixedOnesAreTheLongest) {
  const auto drawn = draw({}, 33);
  EXPECT_EQ(drawn.front(), 33);
  EXPECT_EQ(drawn.back(), 33);
}

TEST(Lengths, UniformOnesReachBothEnds) {
  const auto drawn = draw({LengthDistribution::uniform}, 16);
  EXPECT_EQ(drawn.front(), 1);
  EXPECT_EQ(drawn.back(), 16);
  EXPECT_NEAR(static_cast<double>(drawn[2000]), 8.5, 1);
}

TEST(Lengths, LognormalOnesHaveTheStatedMedianAndSpread) {
  const auto drawn = draw({LengthDistribution::lognormal, 40, 0.5}, 1000);
  EXPECT_NEAR(static_cast<double>(drawn[2000]), 40, 2);
  EXPECT_NEAR(static_cast<double>(drawn[3365]), 40 * std::exp(0.5), 4);  // one sigma above
  EXPECT_EQ(draw({LengthDistribution::lognormal, 40, 0.5}, 50).back(), 50);
  EXPECT_GE(drawn.front(), 1);
}

std::shared_ptr<Model> tiny(double dropout) {
  torch::manual_seed(5);
  ModelOptions options{"transformer_tiny", 32, 10, true};
  options.sequence_length = 12;
  options.lengths = {LengthDistribution::uniform};
  options.dropout = dropout;
  options.label_smoothing = 0.1;
  auto model = make_model(options);
  model->to(at::kDouble);
  return model;
}

/// One sequence of a batch by itself, without its padding.
Batch alone(const Batch& batch, std::int64_t i) {
  const std::int64_t length = (batch.targets[i] >= 0).sum().item<std::int64_t>();
  Batch one;
  const auto part = [&](const at::Tensor& all) { return all.narrow(0, i, 1).narrow(1, 0, length); };
  one.inputs = part(batch.inputs);
  one.targets = part(batch.targets);
  one.decoder_inputs = part(batch.decoder_inputs);
  return one;
}

// In both attention paths: with dropout (whose mask of probability 1e-9 drops nothing) and without.
TEST(Padding, LeavesLossesAndGradientsAsTheyAre) {
  for (const double dropout : {0., 1e-9}) {
    const auto model = tiny(dropout);
    const Batch batch = model->synthetic_batch(6, 3, at::kCPU, at::kDouble);
    ASSERT_TRUE(batch.padding.defined());
    EXPECT_EQ(batch.units, (batch.targets >= 0).sum().item<double>());
    EXPECT_EQ(batch.padded_units, static_cast<double>(batch.targets.numel()));
    const at::Tensor together = model->loss_sum(batch);
    together.backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& leaf : model->parameters()) gradients.push_back(leaf.grad().clone());
    model->zero_grad();
    double sum = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      const at::Tensor loss = model->loss_sum(alone(batch, i));
      loss.backward();
      sum += loss.item<double>();
    }
    EXPECT_NEAR(together.item<double>(), sum, 1e-9 * sum);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(at::allclose(gradients[i], model->parameters()[i].grad(), 1e-8, 1e-9)) << i;
  }
}

}  // namespace
}  // namespace scalemark::lengths_test
