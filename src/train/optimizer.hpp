// Provides optimizers over flat buckets, which also refresh the shadow weights.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// Updates the weights of buckets by an optimizer's rule.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// Returns the number of fp32 tensors that the rule keeps for every weight (Bucket::state). They
  /// start as zero.
  virtual int states() const = 0;
  /// Sets the rate of the following updates. It is --init_learning_rate until the first call.
  void set_learning_rate(double rate) { learning_rate_ = rate; }
  double learning_rate() const { return learning_rate_; }
  /// Returns the steps since the start or restart(), for rules that count them, else 0.
  virtual std::int64_t steps() const { return 0; }
  /// Begins a step, before its first bucket. `skip`, where it is defined, is fp32 [1] on the
  /// device, which the host has not read; where it is 1 the step changes nothing.
  virtual void begin_step(const at::Tensor& skip = {}) {
    skip_ = skip.defined() ? std::optional(skip) : std::nullopt;
  }
  /// Forgets the steps so far. The caller sets the states to zero.
  virtual void restart() {}
  /// Updates weights, states and shadow of a bucket. The gradients are undefined afterwards.
  virtual void update(Bucket& bucket) = 0;

 protected:
  /// Returns `skip` of the current step.
  const std::optional<at::Tensor>& skip() const { return skip_; }

  double learning_rate_ = 0;

 private:
  std::optional<at::Tensor> skip_;
};

/// Makes the rule of a configuration.
/// - sgd, momentum: as torch.optim.SGD and tf_cnn_benchmarks: g += weight_decay * w;
///   v = momentum * v + g; w -= lr * v.
/// - adam: Kingma and Ba 2015, algorithm 1, as torch.optim.Adam, weight decay added to the
/// gradient.
/// - adamw: Loshchilov and Hutter 2019, as torch.optim.AdamW: w -= lr * (Adam's direction +
///   weight_decay * w).
/// - lamb, lars: see layerwise_optimizer.cpp.
/// adamw, lamb and lars apply no weight decay to one-dimensional parameters (biases, gamma and beta
/// of norms); the others do.
std::unique_ptr<UpdateRule> make_update_rule(const ResolvedConfig& config);

/// Makes the rules that scale the step of every matrix by its norms; make_update_rule() calls these
/// functions.
std::unique_ptr<UpdateRule> make_lamb(const ResolvedConfig& config);
std::unique_ptr<UpdateRule> make_lars(const ResolvedConfig& config);

}  // namespace scalemark
