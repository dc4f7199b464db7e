// Sequences of varying length: the distribution is the stated one, and padding changes nothing.
#include "models/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/model.hpp"

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
