// Provides optimizers over flat buckets, which also refresh the shadow weights, and the clipping of
// gradients by their global norm.
#pragma once

#include <memory>
#include <optional>
#include <vector>

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
  void set_learning_rate(double rate) {
    if (rate_on_device_.defined() && rate != learning_rate_) rate_on_device_.fill_(rate);
    learning_rate_ = rate;
  }
  double learning_rate() const { return learning_rate_; }
  /// Keeps the rate in the memory of this device too, where every update reads it, also one that
  /// the device repeats by itself.
  void keep_rate_on(at::Device device) {
    rate_on_device_ = at::full({}, learning_rate_, at::TensorOptions().device(device));
  }
  /// Returns the steps since the start or restart(), for rules that count them, else 0.
  virtual std::int64_t steps() const { return 0; }
  /// Begins a step, before its first bucket. `skip`, where it is defined, is fp32 [1] on the
  /// device, which the host has not read; where it is 1 the step changes nothing.
  virtual void begin_step(const at::Tensor& skip = {}) {
    skip_ = skip.defined() ? std::optional(skip) : std::nullopt;
  }
  /// Sets how values are summed over the ranks that hold parts of every bucket; empty: they are
  /// whole.
  void set_over_shards(SumOverShards over_shards) { over_shards_ = std::move(over_shards); }
  /// Forgets the steps so far. The caller sets the states to zero.
  virtual void restart() {}
  /// Updates weights, states and shadow of a bucket. The gradients are undefined afterwards.
  virtual void update(Bucket& bucket) = 0;

 protected:
  /// Returns `skip` of the current step.
  const std::optional<at::Tensor>& skip() const { return skip_; }

  const SumOverShards& over_shards() const { return over_shards_; }

  bool keeps_rate_on_device() const { return rate_on_device_.defined(); }
  /// Calls `use` with the learning rate: a double, or an fp32 scalar on the device.
  void with_rate(const auto& use) const {
    rate_on_device_.defined() ? use(rate_on_device_) : use(learning_rate_);
  }

 private:
  double learning_rate_ = 0;
  at::Tensor rate_on_device_;  ///< undefined: updates read learning_rate_
  SumOverShards over_shards_;
  std::optional<at::Tensor> skip_;
};

/// Makes the rule of a configuration.
/// - sgd, momentum: as torch.optim.SGD and tf_cnn_benchmarks: g += weight_decay * w;
///   v = momentum * v + g; w -= lr * v.
/// - adam: Kingma and Ba 2015, algorithm 1, as torch.optim.Adam, weight decay added to the
/// gradient.
/// - adamw: Loshchilov and Hutter 2019, as torch.optim.AdamW: w -= lr * (Adam's direction +
///   weight_decay * w).
/// - lamb, lars: You et al. 2020 and 2017 (optimizer.cpp).
/// adamw, lamb and lars apply no weight decay to one-dimensional parameters (biases, gamma and beta
/// of norms); the others do.
/// `behind_host`: the device of the weights where it works behind the host, which keeps the rate
/// and the steps so far in its memory; unset: the CPU.
std::unique_ptr<UpdateRule> make_update_rule(const ResolvedConfig& config,
                                             std::optional<at::Device> behind_host = {});

/// Returns the 2-norm of the gradients of all buckets together, an fp64 scalar on their device.
/// Squares are summed in fp64. With scalemark's own operators the sum on the CPU does not depend on
/// the number of threads: ranks that hold the same gradients get the same bits, so that they need
/// not agree on the norm. LibTorch's operator gives the same bits to ranks with as many threads.
at::Tensor gradient_norm(const std::vector<Bucket>& buckets, const OperatorSet& operators);

/// Clips the gradients by their global norm (Pascanu et al. 2013), --clip_norm: multiplies them by
/// min(1, most / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. Where the norm is not
/// finite, the gradients are not finite afterwards. `over_shards` sums over ranks that hold parts.
/// Only with `may_wait` the factor is read, and gradients that are short enough are left alone.
void clip_gradients(
    std::vector<Bucket>& buckets, double most, const OperatorSet& operators, bool may_wait = true,
    const SumOverShards& over_shards = [](const at::Tensor& value) { return value; });

}  // namespace scalemark
