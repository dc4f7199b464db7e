// Updates against torch::optim, and that training with shadow weights learns what fp32
// learns.
#include "train/optimizer.hpp"

#include <gtest/gtest.h>

#include "config/names.hpp"

namespace scalemark::optimizer_test {
namespace {

Bucket make_bucket(std::int64_t count, int states, bool with_shadow) {
  Bucket bucket;
  bucket.count = count;
  bucket.weights = at::randn({count});
  bucket.gradients = at::zeros({count});
  bucket.slices = {{0, 0, 0, count, false}};
  for (int i = 0; i < states; ++i) bucket.state.push_back(at::zeros({count}));
  if (with_shadow) bucket.shadow = bucket.weights.to(at::kBFloat16);
  return bucket;
}

struct Case {
  Optimizer optimizer;
  double weight_decay;
  bool shadow;
};

ResolvedConfig config_of(const Case& c) {
  RunConfig config;
  config.optimizer = c.optimizer;
  config.init_learning_rate = 0.1;
  config.weight_decay = c.weight_decay;
  return config;
}

std::unique_ptr<torch::optim::Optimizer> torchs_own(const ResolvedConfig& config,
                                                    at::Tensor weights) {
  if (config.optimizer == Optimizer::adam)
    return std::make_unique<torch::optim::Adam>(
        std::vector{weights}, torch::optim::AdamOptions(*config.init_learning_rate)
                                  .betas({config.adam_beta1, *config.adam_beta2})
                                  .eps(*config.adam_epsilon)
                                  .weight_decay(*config.weight_decay));
  if (config.optimizer == Optimizer::adamw)
    return std::make_unique<torch::optim::AdamW>(
        std::vector{weights}, torch::optim::AdamWOptions(*config.init_learning_rate)
                                  .betas({config.adam_beta1, *config.adam_beta2})
                                  .eps(*config.adam_epsilon)
                                  .weight_decay(*config.weight_decay));
  const double momentum = config.optimizer == Optimizer::momentum ? config.momentum : 0;
  return std::make_unique<torch::optim::SGD>(std::vector{weights},
                                             torch::optim::SGDOptions(*config.init_learning_rate)
                                                 .momentum(momentum)
                                                 .weight_decay(*config.weight_decay));
}

class Update : public ::testing::TestWithParam<Case> {};

TEST_P(Update, IsThatOfTorch) {
  const Case c = GetParam();
  torch::manual_seed(1);
  const std::int64_t count = (1 << 18) + 1001;  // more than one chunk, no multiple of a vector
  const auto ours = make_update_rule(config_of(c));
  Bucket bucket = make_bucket(count, ours->states(), c.shadow);
  const at::Tensor weights = bucket.weights.clone().set_requires_grad(true);
  const auto torchs = torchs_own(config_of(c), weights);
  for (int step = 0; step < 4; ++step) {
    bucket.gradients.copy_(at::randn({count}));
    weights.mutable_grad() = bucket.gradients.clone();
    ours->begin_step();
    ours->update(bucket);
    torchs->step();
    EXPECT_TRUE(at::allclose(bucket.weights, weights.detach(), 1e-5, 1e-6)) << "step " << step;
    if (c.shadow) {
      EXPECT_TRUE(at::equal(bucket.shadow, bucket.weights.to(at::kBFloat16)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Update,
    ::testing::Values(Case{Optimizer::sgd, 0, false}, Case{Optimizer::sgd, 0.01, false},
                      Case{Optimizer::momentum, 0, false}, Case{Optimizer::momentum, 4e-5, true},
                      Case{Optimizer::adam, 0, false}, Case{Optimizer::adam, 0.01, true},
                      Case{Optimizer::adamw, 0.1, false}, Case{Optimizer::adamw, 0.1, true}));

TEST(Update, AdamStartsAnew) {
  const auto rule = make_update_rule(config_of({Optimizer::adam, 0, false}));
  const auto first_step = [&] {
    torch::manual_seed(1);
    Bucket bucket = make_bucket(100, rule->states(), false);
    bucket.gradients.fill_(0.5);
    rule->restart();
    rule->begin_step();
    rule->update(bucket);
    return bucket.weights;
  };
  EXPECT_TRUE(at::equal(first_step(), first_step()));
}

/// Every rule obeys a schedule; a rule with a rate of its own would go on moving the weights.
TEST(Update, FollowsTheLearningRateThatIsSet) {
  for (const std::string_view name : names_of(Optimizer{})) {
    ResolvedConfig config = config_of({*from_string<Optimizer>(name), 0, false});
    config.init_learning_rate = 0.3;
    const auto scheduled = make_update_rule(config);
    torch::manual_seed(1);
    Bucket bucket = make_bucket(64, scheduled->states(), false);
    bucket.gradients.copy_(at::randn({64}));
    const auto moved = [&](double rate) {
      const at::Tensor before = bucket.weights.clone();
      scheduled->set_learning_rate(rate);
      scheduled->begin_step();
      scheduled->update(bucket);
      return (bucket.weights - before).norm().item<double>();
    };
    EXPECT_EQ(moved(0), 0) << name;
    EXPECT_GT(moved(0.1), 0) << name;
    // The velocity of lars holds the rate of the steps that made it (You et al. 2017, algorithm 1).
    if (config.optimizer == Optimizer::lars) continue;
    EXPECT_EQ(moved(0), 0) << name;
  }
}

TEST(Update, UnderAScheduleIsThatOfTorch) {
  const RunConfig config = config_of({Optimizer::adam, 0, false});
  const auto ours = make_update_rule(config);
  torch::manual_seed(1);
  Bucket bucket = make_bucket(1001, ours->states(), false);
  const at::Tensor weights = bucket.weights.clone().set_requires_grad(true);
  const auto torchs = torchs_own(config, weights);
  for (const double rate : {0.05, 0.1, 0.02, 0.}) {
    bucket.gradients.copy_(at::randn({1001}));
    weights.mutable_grad() = bucket.gradients.clone();
    ours->set_learning_rate(rate);
    ours->begin_step();
    ours->update(bucket);
    torchs->param_groups()[0].options().set_lr(rate);
    torchs->step();
    EXPECT_TRUE(at::allclose(bucket.weights, weights.detach(), 1e-5, 1e-6)) << rate;
  }
}

/// A step that is skipped on the device is as none: weights, states, and the count of steps.
TEST(Update, SkipsAStepThatTheHostHasNotRead) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam,
                                    Optimizer::adamw, Optimizer::lamb, Optimizer::lars}) {
    const auto train = [&](const std::vector<double>& gradients) {
      const auto rule = make_update_rule(config_of({optimizer, 0.01, false}));
      torch::manual_seed(1);
      Bucket bucket = make_bucket(1001, rule->states(), false);
      for (const double gradient : gradients) {
        bucket.gradients.fill_(gradient);
        rule->begin_step(at::full({1}, std::isfinite(gradient) ? 0.f : 1.f));
        rule->update(bucket);
      }
      return std::pair{bucket.weights, rule->steps()};
    };
    const auto [skipped, steps] = train({0.5, INFINITY, -0.25});
    const auto [without, fewer] = train({0.5, -0.25});
    EXPECT_TRUE(at::equal(skipped, without)) << to_string(optimizer);
    EXPECT_EQ(steps, fewer) << to_string(optimizer);
  }
}

/// Losses (per sample) of `steps` steps of smallnet on one batch.
std::vector<double> train_smallnet(at::ScalarType dtype, int steps) {
  torch::manual_seed(1);
  const auto model = make_model({"smallnet", 32, 10, true});
  const auto flat = std::make_shared<FlatParameters>(*model, gradient_ready_order(*model, at::kCPU),
                                                     FlatLayout{1 << 16, 1 << 16, 1, dtype});
  model->set_gate(flat);
  RunConfig config;
  config.init_learning_rate = 0.02;
  const auto optimizer = make_update_rule(config);
  const Batch batch = model->synthetic_batch(16, 1, at::kCPU, dtype);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor loss = model->loss_sum(batch) / batch.loss_count;
    loss.backward();
    for (Bucket& bucket : flat->buckets()) optimizer->update(bucket);
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
}  // namespace scalemark::optimizer_test
