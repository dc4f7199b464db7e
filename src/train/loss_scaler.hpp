// Loss scaling for fp16: gradients below 6e-8 would be lost, so the loss is multiplied by a large
// factor before the backward pass and the sums of the gradients are divided by it (Micikevicius et
// al. 2018, 3.2).
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// The dynamic rule is that of torch.amp.GradScaler: a step whose gradients are not all finite is
/// left out and halves the scale; --fp16_inc_loss_scale_every_n steps in a row without one double
/// it. Without --fp16_enable_auto_loss_scale such steps are left out too, but the scale stays.
class LossScaler {
 public:
  /// Of other precisions than fp16 it does nothing: the scale is 1.
  explicit LossScaler(const ResolvedConfig& config);

  bool enabled() const { return enabled_; }
  double scale() const { return scale_; }
  /// Divides summed gradients by the scale and adapts it. False where one of them is not finite:
  /// the weights must stay as they are. Equal sums make equal decisions, so ranks need not agree.
  bool unscale(std::vector<Bucket>& buckets);
  /// So far.
  LossScaling report() const;

 private:
  bool enabled_, dynamic_;
  double initial_, scale_;
  std::int64_t growth_interval_, steps_since_change_ = 0, skipped_ = 0;
};

}  // namespace scalemark
