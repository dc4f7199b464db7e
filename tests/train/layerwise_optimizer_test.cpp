// AdamW, LAMB and LARS against their papers' formulas in fp64, step by step, over parameters in
// buckets of any size.
#include <gtest/gtest.h>

#include "train/optimizer.hpp"

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
