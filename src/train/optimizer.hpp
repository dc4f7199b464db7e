// Optimizers over flat buckets, which also refresh the shadow weights.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// fp32 tensors that it keeps for every weight (Bucket::state), which start as zero.
  virtual int states() const = 0;
  /// Of the updates to come; --init_learning_rate until the first call.
  void set_learning_rate(double rate) { learning_rate_ = rate; }
  double learning_rate() const { return learning_rate_; }
  /// Steps since the start or restart(), of rules that count them; else 0.
  virtual std::int64_t steps() const { return 0; }
  /// Before the first bucket of a step. `skip`, where it is defined: fp32 [1] on the device, which
  /// the host has not read; where it is 1 the step changes nothing.
  virtual void begin_step(const at::Tensor& skip = {}) {
    skip_ = skip.defined() ? std::optional(skip) : std::nullopt;
  }
  /// Forgets the steps so far; the caller zeroes the states.
  virtual void restart() {}
  /// Weights, states and shadow; what the gradients hold afterwards is undefined.
  virtual void update(Bucket& bucket) = 0;

 protected:
  /// Of the step under way.
  const std::optional<at::Tensor>& skip() const { return skip_; }

  double learning_rate_ = 0;

 private:
  std::optional<at::Tensor> skip_;
};

/// sgd, momentum: as torch.optim.SGD and tf_cnn_benchmarks: g += weight_decay * w; v = momentum * v
/// + g; w -= lr * v.
/// adam: Kingma and Ba 2015, algorithm 1, as torch.optim.Adam, weight decay added to the gradient.
/// adamw: Loshchilov and Hutter 2019, as torch.optim.AdamW: w -= lr * (Adam's direction +
/// weight_decay * w).
/// lamb, lars: see layerwise_optimizer.cpp.
/// adamw, lamb and lars spare one-dimensional parameters (biases, gamma and beta of norms) from
/// weight decay; the others don't.
std::unique_ptr<UpdateRule> make_update_rule(const ResolvedConfig& config);

/// Of make_update_rule(): the rules that scale every matrix's step by norms of its own.
std::unique_ptr<UpdateRule> make_lamb(const ResolvedConfig& config);
std::unique_ptr<UpdateRule> make_lars(const ResolvedConfig& config);

}  // namespace scalemark
