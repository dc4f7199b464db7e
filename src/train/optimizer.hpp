// Optimizers over flat buckets: one fused pass per bucket which also refreshes the bf16 shadow.
#pragma once

#include <memory>

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
  /// Before the first bucket of a step.
  virtual void begin_step() {}
  /// Forgets the steps so far; the caller zeroes the states.
  virtual void restart() {}
  void update(Bucket& bucket);

 protected:
  /// A part of a bucket: equally long pieces of its tensors.
  virtual void update(const at::Tensor& weights, const at::Tensor& gradients,
                      const std::vector<at::Tensor>& state) = 0;
  double learning_rate_ = 0;
};

/// SGD as torch.optim.SGD and tf_cnn_benchmarks' momentum: g += weight_decay * w; v = momentum * v
/// + g; w -= lr * v. Adam (Kingma and Ba 2015, algorithm 1) as torch.optim.Adam, weight decay added
/// to the gradient. `config` must be resolved().
std::unique_ptr<UpdateRule> make_update_rule(const RunConfig& config);

}  // namespace scalemark
