// The update against torch::optim::SGD, and that training with shadow weights learns what fp32
// learns.
#include "train/optimizer.hpp"

#include <gtest/gtest.h>

namespace scalemark {
namespace {

Bucket make_bucket(std::int64_t count, bool with_momentum, bool with_shadow) {
  Bucket bucket;
  bucket.count = count;
  bucket.weights = at::randn({count});
  bucket.gradients = at::zeros({count});
  if (with_momentum) bucket.momentum = at::zeros({count});
  if (with_shadow) bucket.shadow = bucket.weights.to(at::kBFloat16);
  return bucket;
}

struct Case {
  double momentum, weight_decay;
  bool shadow;
};

class Sgd : public ::testing::TestWithParam<Case> {};

TEST_P(Sgd, UpdatesAsTorch) {
  const Case c = GetParam();
  torch::manual_seed(1);
  const std::int64_t count = (1 << 18) + 1001;  // more than one chunk, no multiple of a vector
  Bucket bucket = make_bucket(count, c.momentum > 0, c.shadow);
  SgdOptimizer ours(0.1, c.momentum, c.weight_decay);

  const at::Tensor weights = bucket.weights.clone().set_requires_grad(true);
  torch::optim::SGD torchs(
      {weights}, torch::optim::SGDOptions(0.1).momentum(c.momentum).weight_decay(c.weight_decay));
  for (int step = 0; step < 4; ++step) {
    bucket.gradients.copy_(at::randn({count}));
    weights.mutable_grad() = bucket.gradients.clone();
    ours.step(bucket);
    torchs.step();
    EXPECT_TRUE(at::allclose(bucket.weights, weights.detach(), 1e-6, 1e-7)) << "step " << step;
    if (c.shadow) {
      EXPECT_TRUE(at::equal(bucket.shadow, bucket.weights.to(at::kBFloat16)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Sgd,
                         ::testing::Values(Case{0, 0, false}, Case{0, 0.01, false},
                                           Case{0.9, 0, false}, Case{0.9, 4e-5, false},
                                           Case{0.9, 4e-5, true}));

/// Losses (per sample) of `steps` steps of smallnet on one batch.
std::vector<double> train_smallnet(at::ScalarType dtype, int steps) {
  torch::manual_seed(1);
  const auto model = make_model({"smallnet", 32, 10, true});
  const auto flat = std::make_shared<FlatParameters>(*model, gradient_ready_order(*model, at::kCPU),
                                                     1 << 16, true, dtype);
  model->set_gate(flat);
  SgdOptimizer optimizer(0.02, 0.9, 4e-5);
  const Batch batch = model->synthetic_batch(16, 1, at::kCPU, dtype);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor loss = model->loss_sum(batch) / batch.loss_count;
    loss.backward();
    for (Bucket& bucket : flat->buckets()) optimizer.step(bucket);
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST(Training, Bf16LearnsWhatFp32Learns) {
  const auto fp32 = train_smallnet(at::kFloat, 60);
  const auto bf16 = train_smallnet(at::kBFloat16, 60);
  EXPECT_LT(fp32.back(), 0.8 * fp32.front());
  EXPECT_LT(bf16.back(), 0.8 * bf16.front());
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_NEAR(bf16[i], fp32[i], 0.03 * fp32[i]) << "step " << i;
}

}  // namespace
}  // namespace scalemark
