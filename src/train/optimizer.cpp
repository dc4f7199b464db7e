// SGD, Adam and AdamW through LibTorch's fused operators (vectorised and threaded on the CPU, one
// kernel on CUDA); Adam on the CPU by a step of the operators' own where they have one, which
// writes the shadow in the same pass.
#include "train/optimizer.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/bucket_parts.hpp"
#include "train/counted_steps.hpp"
#include "train/operators_of.hpp"

namespace scalemark {
namespace {

/// A run of elements that are updated alike.
struct Run {
  std::int64_t begin, count;
  double weight_decay;
};

/// Returns runs of parameters, padding included, with weight decay and without it.
std::vector<Run> runs_of(const Bucket& bucket, double weight_decay) {
  std::vector<Run> runs;
  for (const Slice& slice : bucket.slices) {
    const double decay = slice.vector ? 0 : weight_decay;
    if (!runs.empty() && runs.back().weight_decay == decay) continue;
    if (!runs.empty()) runs.back().count = slice.offset - runs.back().begin;
    runs.push_back({slice.offset, bucket.count - slice.offset, decay});
  }
  return runs;
}

/// Updates every element independently, so a bucket is updated in runs as long as possible.
class ElementwiseRule : public UpdateRule {
 public:
  ElementwiseRule(double weight_decay, bool spares_vectors)
      : weight_decay_(weight_decay), spares_vectors_(spares_vectors) {}

  void update(Bucket& bucket) override {
    const at::NoGradGuard no_grad;
    const bool whole = refreshes_shadow(bucket.weights, bucket.shadow);
    const bool chunked = bucket.shadow.defined() && bucket.weights.is_cpu() && !whole;
    const auto runs = spares_vectors_ ? runs_of(bucket, weight_decay_)
                                      : std::vector{Run{0, bucket.count, weight_decay_}};
    for (const Run& run : runs)
      for (const Part& part :
           parts_of(bucket, run.begin, run.count, chunked ? kPartElements : run.count)) {
        update(part, run.weight_decay);
        if (!whole) part.refresh_shadow();
      }
  }

 protected:
  /// Returns whether update() of a part also writes its shadow.
  virtual bool refreshes_shadow(const at::Tensor& /*weights*/, const at::Tensor& /*shadow*/) const {
    return false;
  }
  virtual void update(const Part& part, double weight_decay) = 0;

 private:
  double weight_decay_;
  bool spares_vectors_;
};

class Sgd : public ElementwiseRule {
 public:
  Sgd(const ResolvedConfig& config, double momentum)
      : ElementwiseRule(*config.weight_decay, false), momentum_(momentum) {}
  int states() const override { return momentum_ > 0 ? 1 : 0; }

 protected:
  void update(const Part& part, double weight_decay) override {
    // The momentum starts as zero, so the first step is no special case.
    at::_fused_sgd_(part.weights, part.gradients, part.state, weight_decay, momentum_,
                    learning_rate_, /*dampening=*/0., /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false, /*grad_scale=*/{}, skip());
  }

 private:
  double momentum_;
};

class Adam : public ElementwiseRule {
 public:
  Adam(const ResolvedConfig& config, bool decoupled)
      : ElementwiseRule(*config.weight_decay, decoupled),
        decoupled_(decoupled),
        in_one_pass_(operators_of(config).adam_step()),
        beta1_(config.adam_beta1),
        beta2_(*config.adam_beta2),
        epsilon_(*config.adam_epsilon) {}
  int states() const override { return 2; }
  void begin_step(const at::Tensor& skip) override {
    ElementwiseRule::begin_step(skip);
    steps_.begin_step(skip);
  }
  void restart() override { steps_ = {}; }
  std::int64_t steps() const override { return steps_.count(); }

 protected:
  bool refreshes_shadow(const at::Tensor& weights, const at::Tensor& shadow) const override {
    return in_one_pass_ && !skip() && !steps_.may_have_skipped() && weights.is_cpu() &&
           (!shadow.defined() || shadow.scalar_type() == at::kBFloat16);
  }

  void update(const Part& part, double weight_decay) override {
    if (refreshes_shadow(part.weights, part.shadow)) return update_in_one_pass(part, weight_decay);
    const at::Tensor step = steps_.on_device(part.weights.options());
    if (decoupled_)
      at::_fused_adamw_(part.weights, part.gradients, part.state[0], part.state[1], {}, step,
                        learning_rate_, beta1_, beta2_, weight_decay, epsilon_, /*amsgrad=*/false,
                        /*maximize=*/false, /*grad_scale=*/{}, skip());
    else
      at::_fused_adam_(part.weights, part.gradients, part.state[0], part.state[1], {}, step,
                       learning_rate_, beta1_, beta2_, weight_decay, epsilon_, /*amsgrad=*/false,
                       /*maximize=*/false, /*grad_scale=*/{}, skip());
  }

 private:
  void update_in_one_pass(const Part& part, double weight_decay) const {
    const auto correction = [&](double beta) { return 1 - std::pow(beta, steps_.begun()); };
    const AdamRates rates{
        .of_mean = static_cast<float>(1 - beta1_),
        .of_square = static_cast<float>(1 - beta2_),
        .decay = static_cast<float>(decoupled_ ? 0 : weight_decay),
        .shrink = static_cast<float>(decoupled_ ? 1 - learning_rate_ * weight_decay : 1),
        .rate = static_cast<float>(learning_rate_ / correction(beta1_)),
        .correction = static_cast<float>(std::sqrt(correction(beta2_))),
        .epsilon = static_cast<float>(epsilon_)};
    in_one_pass_({part.weights, part.gradients, part.state[0], part.state[1], part.shadow}, rates);
  }

  bool decoupled_;
  AdamStep in_one_pass_;  ///< null: LibTorch's
  double beta1_, beta2_, epsilon_;
  CountedSteps steps_;
};

std::unique_ptr<UpdateRule> rule_of(const ResolvedConfig& config) {
  switch (*config.optimizer) {
    case Optimizer::momentum:
      return std::make_unique<Sgd>(config, config.momentum);
    case Optimizer::adam:
      return std::make_unique<Adam>(config, false);
    case Optimizer::adamw:
      return std::make_unique<Adam>(config, true);
    case Optimizer::lamb:
      return make_lamb(config);
    case Optimizer::lars:
      return make_lars(config);
    case Optimizer::sgd:
      break;
  }
  return std::make_unique<Sgd>(config, 0);
}

}  // namespace

std::vector<Part> parts_of(const Bucket& bucket, std::int64_t begin, std::int64_t count,
                           std::int64_t largest) {
  std::vector<Part> parts;
  for (const std::int64_t end = begin + count; begin < end; begin += largest) {
    const std::int64_t size = std::min(largest, end - begin);
    const auto piece = [&](const at::Tensor& flat) {
      return flat.defined() ? flat.narrow(0, begin, size) : flat;
    };
    Part& part = parts.emplace_back();
    part.weights = piece(bucket.weights);
    part.gradients = piece(bucket.gradients);
    part.shadow = piece(bucket.shadow);
    for (const at::Tensor& flat : bucket.state) part.state.push_back(piece(flat));
  }
  return parts;
}

std::unique_ptr<UpdateRule> make_update_rule(const ResolvedConfig& config) {
  std::unique_ptr<UpdateRule> rule = rule_of(config);
  rule->set_learning_rate(*config.init_learning_rate);
  return rule;
}

}  // namespace scalemark
