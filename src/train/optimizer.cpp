// SGD and Adam through LibTorch's fused operators (vectorised and threaded on the CPU, one kernel on
// CUDA).
#include "train/optimizer.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>

namespace scalemark {
namespace {

/// Elements updated at a time on the CPU: small enough that the shadow is refreshed from weights
/// still in cache.
constexpr std::int64_t kChunk = 1 << 18;

class Sgd : public UpdateRule {
 public:
  Sgd(double momentum, double weight_decay) : momentum_(momentum), weight_decay_(weight_decay) {}
  int states() const override { return momentum_ > 0 ? 1 : 0; }

 protected:
  void update(const at::Tensor& weights, const at::Tensor& gradients,
              const std::vector<at::Tensor>& state) override {
    // The momentum starts as zero, so that the first step is no special case.
    at::_fused_sgd_(weights, gradients, state, weight_decay_, momentum_, learning_rate_,
                    /*dampening=*/0., /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
  }

 private:
  double momentum_, weight_decay_;
};

class Adam : public UpdateRule {
 public:
  explicit Adam(const RunConfig& config)
      : beta1_(config.adam_beta1),
        beta2_(config.adam_beta2),
        epsilon_(config.adam_epsilon),
        weight_decay_(*config.weight_decay) {}
  int states() const override { return 2; }
  void begin_step() override { ++step_; }
  void restart() override { step_ = 0; }

 protected:
  void update(const at::Tensor& weights, const at::Tensor& gradients,
              const std::vector<at::Tensor>& state) override {
    const at::Tensor step = at::full({}, step_, weights.options());
    at::_fused_adam_(weights, gradients, state[0], state[1], {}, step, learning_rate_, beta1_,
                     beta2_, weight_decay_, epsilon_, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  double beta1_, beta2_, epsilon_, weight_decay_;
  double step_ = 0;
};

std::unique_ptr<UpdateRule> rule_of(const RunConfig& config) {
  if (config.optimizer == Optimizer::adam) return std::make_unique<Adam>(config);
  return std::make_unique<Sgd>(config.optimizer == Optimizer::momentum ? config.momentum : 0,
                               *config.weight_decay);
}

}  // namespace

void UpdateRule::update(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  const bool chunked = bucket.shadow.defined() && bucket.weights.is_cpu();
  const std::int64_t chunk = chunked ? kChunk : bucket.count;
  for (std::int64_t begin = 0; begin < bucket.count; begin += chunk) {
    const std::int64_t count = std::min(chunk, bucket.count - begin);
    const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, begin, count); };
    const at::Tensor weights = part(bucket.weights);
    std::vector<at::Tensor> state;
    for (const at::Tensor& flat : bucket.state) state.push_back(part(flat));
    update(weights, part(bucket.gradients), state);
    if (bucket.shadow.defined()) part(bucket.shadow).copy_(weights);
  }
}

std::unique_ptr<UpdateRule> make_update_rule(const RunConfig& config) {
  std::unique_ptr<UpdateRule> rule = rule_of(config);
  rule->set_learning_rate(*config.init_learning_rate);
  return rule;
}

}  // namespace scalemark
