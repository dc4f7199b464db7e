// Updates against torch::optim, and that training with shadow weights learns what fp32
// learns.
#include "train/optimizer.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

// AdamW, LAMB and LARS against their papers' formulas in fp64, step by step, over parameters in
// buckets of any size.
namespace scalemark::layerwise_optimizer_test {
namespace {

/// Matrices and vectors of sizes that are no multiples of a vector register, one of them longer
/// than a part of an update.
class Parameters : public Model {
 public:
  Parameters() {
    torch::manual_seed(1);
    int index = 0;
    for (const at::Tensor& value :
         {0.05 * at::randn({37, 51}), at::ones({77}), 3 * at::randn({3, 2}), at::randn({101, 2711}),
          at::zeros({33}), at::zeros({5, 7})})
      register_parameter("p" + std::to_string(index++), value.clone());
  }
  Batch synthetic_batch(std::int64_t, std::uint64_t, at::Device, at::ScalarType) override {
    return {};
  }
  at::Tensor loss_sum(const Batch&) override { return {}; }
  at::Tensor forward(const Batch&) override { return {}; }
};

struct Case {
  Optimizer optimizer;
  at::ScalarType dtype = at::kFloat;
};

constexpr int kSteps = 6;

ResolvedConfig config_of(Optimizer optimizer) {
  RunConfig config;
  config.optimizer = optimizer;
  config.init_learning_rate = optimizer == Optimizer::lars ? 5 : 0.02;
  config.weight_decay = 0.1;
  return config;
}

/// It changes from step to step, as under a schedule.
double learning_rate(const RunConfig& config, int step) {
  return *config.init_learning_rate / (1 + step % 3);
}

/// The gradient of a parameter in a step: of a size of its own, and zero for the third matrix in
/// the first step.
at::Tensor gradient(std::size_t parameter, int step, at::IntArrayRef shape) {
  torch::manual_seed(100 * step + static_cast<int>(parameter));
  return (step == 0 && parameter == 2 ? 0. : 1. / static_cast<double>(1 + parameter)) *
         at::randn(shape);
}

struct Trained {
  std::shared_ptr<Parameters> model = std::make_shared<Parameters>();
  std::shared_ptr<FlatParameters> flat;
};

Trained train(const Case& c, std::int64_t bucket_bytes) {
  const RunConfig config = config_of(c.optimizer);
  const auto rule = make_update_rule(config);
  Trained trained;
  trained.flat = std::make_shared<FlatParameters>(
      *trained.model, std::vector{5, 4, 3, 2, 1, 0},
      FlatLayout{bucket_bytes, bucket_bytes, rule->states(), c.dtype});
  for (int step = 0; step < kSteps; ++step) {
    for (const Slice& slice : trained.flat->slices()) {
      const auto index = static_cast<std::size_t>(slice.parameter);
      trained.flat->buckets()[slice.bucket]
          .gradients.narrow(0, slice.offset, slice.count)
          .copy_(gradient(index, step, trained.model->parameters()[index].sizes()).flatten());
    }
    rule->set_learning_rate(learning_rate(config, step));
    rule->begin_step();
    for (Bucket& bucket : trained.flat->buckets()) rule->update(bucket);
  }
  return trained;
}

/// One parameter under one rule, in fp64, from the formulas.
class Reference {
 public:
  Reference(const RunConfig& config, const at::Tensor& weight)
      : c_(config),
        w_(weight.detach().to(at::kDouble)),
        m_(at::zeros_like(w_)),
        v_(at::zeros_like(w_)),
        decay_(weight.dim() > 1 ? *config.weight_decay : 0) {}

  void step(const at::Tensor& gradient) {
    const at::Tensor g = gradient.to(at::kDouble);
    const double rate = learning_rate(c_, t_++);
    if (c_.optimizer == Optimizer::lars) {
      const double w = norm(w_), size = norm(g);
      const double trust = c_.lars_trust_coefficient * w / (size + decay_ * w);
      m_ = c_.momentum * m_ + rate * (adapts(w, size) ? trust : 1) * (g + decay_ * w_);
      w_ = w_ - m_;
      return;
    }
    const double beta1 = c_.adam_beta1, beta2 = *c_.adam_beta2;
    m_ = beta1 * m_ + (1 - beta1) * g;
    v_ = beta2 * v_ + (1 - beta2) * g * g;
    const at::Tensor u = m_ / (1 - std::pow(beta1, t_)) /
                             (at::sqrt(v_ / (1 - std::pow(beta2, t_))) + *c_.adam_epsilon) +
                         decay_ * w_;
    const bool scaled = c_.optimizer == Optimizer::lamb && adapts(norm(w_), norm(u));
    w_ = w_ - rate * (scaled ? norm(w_) / norm(u) : 1) * u;
  }
  const at::Tensor& weight() const { return w_; }

 private:
  static double norm(const at::Tensor& x) { return x.norm().item<double>(); }
  bool adapts(double w, double other) const { return w_.dim() > 1 && w > 0 && other > 0; }

  RunConfig c_;
  at::Tensor w_, m_, v_;
  double decay_;
  int t_ = 0;
};

class Rule : public ::testing::TestWithParam<Case> {};

TEST_P(Rule, IsThatOfItsPaper) {
  const Trained trained = train(GetParam(), 100'000);
  const Parameters start;
  const auto before = start.parameters(), after = trained.model->parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    Reference reference(config_of(GetParam().optimizer), before[i]);
    for (int step = 0; step < kSteps; ++step) reference.step(gradient(i, step, before[i].sizes()));
    const at::Tensor moved = reference.weight() - before[i].detach();
    EXPECT_GT(moved.norm().item<double>(), 0) << "parameter " << i;
    const double error = (after[i].detach() - reference.weight()).norm().item<double>();
    EXPECT_LT(error, 1e-5 * reference.weight().norm().item<double>()) << "parameter " << i;
  }
}

TEST_P(Rule, GivesTheSameBitsWhateverTheBuckets) {
  const Trained one = train(GetParam(), 1 << 30), many = train(GetParam(), 1);
  EXPECT_EQ(one.flat->buckets().size(), 1u);
  EXPECT_EQ(many.flat->buckets().size(), one.flat->slices().size());
  for (std::size_t i = 0; i < one.model->parameters().size(); ++i)
    EXPECT_TRUE(at::equal(one.model->parameters()[i], many.model->parameters()[i]))
        << "parameter " << i;
}

TEST_P(Rule, ShadowsFollowAndPaddingStaysZero) {
  const Trained trained = train(GetParam(), 100'000);
  for (const Bucket& bucket : trained.flat->buckets()) {
    at::Tensor padding = at::ones({bucket.count}, at::kBool);
    for (const Slice& slice : bucket.slices)
      padding.narrow(0, slice.offset, slice.count).fill_(false);
    EXPECT_EQ(bucket.weights.masked_select(padding).count_nonzero().item<long>(), 0);
    EXPECT_EQ(bucket.shadow.defined(), GetParam().dtype != at::kFloat);
    if (bucket.shadow.defined()) {
      EXPECT_TRUE(at::equal(bucket.shadow, bucket.weights.to(at::kBFloat16)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Rule,
    ::testing::Values(Case{Optimizer::adamw}, Case{Optimizer::adamw, at::kBFloat16},
                      Case{Optimizer::lamb}, Case{Optimizer::lamb, at::kBFloat16},
                      Case{Optimizer::lars}, Case{Optimizer::lars, at::kBFloat16}));

TEST(WeightDecay, SparesVectors) {
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::lamb, Optimizer::lars}) {
    const auto rule = make_update_rule(config_of(optimizer));
    Parameters model;
    FlatParameters flat(model, {0, 1, 2, 3, 4, 5}, {1 << 20, 1 << 20, rule->states(), at::kFloat});
    const at::Tensor matrix = model.parameters()[0].detach().clone();
    rule->begin_step();
    for (Bucket& bucket : flat.buckets()) rule->update(bucket);  // gradients are zero
    EXPECT_TRUE(at::equal(model.parameters()[1], at::ones({77})));
    EXPECT_LT(model.parameters()[0].norm().item<double>(), matrix.norm().item<double>());
  }
}

}  // namespace
}  // namespace scalemark::layerwise_optimizer_test

// Gradient clipping against a double-precision reference and torch's own.
namespace scalemark::clipping_test {
namespace {

/// Buckets of unlike sizes, none a multiple of a block or a vector, one of several blocks.
std::vector<Bucket> make_buckets(double scale) {
  torch::manual_seed(3);
  std::vector<Bucket> buckets;
  for (const std::int64_t count : {1, 1001, 300'007}) {
    Bucket bucket;
    bucket.count = count;
    bucket.gradients = at::randn({count}) * scale;
    buckets.push_back(bucket);
  }
  return buckets;
}

double reference_norm(const std::vector<Bucket>& buckets) {
  long double squares = 0;
  for (const Bucket& bucket : buckets)
    for (std::int64_t i = 0; i < bucket.count; ++i) {
      const long double value = bucket.gradients.const_data_ptr<float>()[i];
      squares += value * value;
    }
  return static_cast<double>(std::sqrt(squares));
}

TEST(GradientNorm, IsThatOfDoublePrecision) {
  for (const double scale : {1e-15, 1., 1e15}) {  // squares of the outer ones leave fp32
    const auto buckets = make_buckets(scale);
    const double expected = reference_norm(buckets);
    EXPECT_NEAR(gradient_norm(buckets, standard_operators()).item<double>(), expected,
                1e-13 * expected);
  }
}

TEST(GradientNorm, DoesNotDependOnTheThreads) {
  const auto buckets = make_buckets(1);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double alone = gradient_norm(buckets, standard_operators()).item<double>();
  at::set_num_threads(2);
  const double together = gradient_norm(buckets, standard_operators()).item<double>();
  at::set_num_threads(before);
  EXPECT_EQ(alone, together);
}

TEST(Clipping, IsThatOfTorch) {
  for (const double most : {0.1, 100., 1e6}) {
    auto buckets = make_buckets(1);
    std::vector<at::Tensor> leaves;
    for (const Bucket& bucket : buckets) {
      leaves.push_back(at::zeros({bucket.count}).set_requires_grad(true));
      leaves.back().mutable_grad() = bucket.gradients.clone();
    }
    torch::nn::utils::clip_grad_norm_(leaves, most);
    clip_gradients(buckets, most, standard_operators());
    for (std::size_t i = 0; i < buckets.size(); ++i)
      EXPECT_TRUE(at::allclose(buckets[i].gradients, leaves[i].grad(), 1e-5, 1e-9)) << most;
    EXPECT_NEAR(reference_norm(buckets), std::min(most, reference_norm(make_buckets(1))),
                1e-5 * most);
  }
}

TEST(Clipping, LeavesShortGradientsAlone) {
  auto buckets = make_buckets(1e-3);
  const auto before = make_buckets(1e-3);
  clip_gradients(buckets, 1, standard_operators());
  for (std::size_t i = 0; i < buckets.size(); ++i)
    EXPECT_TRUE(at::equal(buckets[i].gradients, before[i].gradients));
}

TEST(Clipping, DoesNotHideWhatIsNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto buckets = make_buckets(1);
    buckets[1].gradients[5] = bad;
    clip_gradients(buckets, 1, standard_operators());
    EXPECT_FALSE(std::isfinite(buckets[1].gradients[5].item<double>()));
  }
}

}  // namespace
}  // namespace scalemark::clipping_test
