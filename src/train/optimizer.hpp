// Optimizers over flat buckets.
#pragma once

#include "config/run_config.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// SGD as torch.optim.SGD and tf_cnn_benchmarks' momentum: g += weight_decay * w; v = momentum * v
/// + g; w -= lr * v; one fused pass per bucket which also refreshes the bf16 shadow.
class SgdOptimizer {
 public:
  SgdOptimizer(double learning_rate, double momentum, double weight_decay);
  void step(Bucket& bucket);

 private:
  double learning_rate_, momentum_, weight_decay_;
};

}  // namespace scalemark
