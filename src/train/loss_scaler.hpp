// Scales the loss for fp16: gradients below 6e-8 would be lost, so the loss is multiplied by a
// large factor before the backward pass and the sums of the gradients are divided by it
// (Micikevicius et al. 2018, 3.2).
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// Adapts the scale by the dynamic rule of torch.amp.GradScaler: a step whose gradients are not all
/// finite is skipped and halves the scale; --fp16_inc_loss_scale_every_n steps in a row without one
/// double it. Without --fp16_enable_auto_loss_scale such steps are skipped too, but the scale
/// stays.
class LossScaler {
 public:
  /// Is enabled for fp16 only. Where it is not, call nothing else.
  LossScaler(const ResolvedConfig& config, at::Device device);

  bool enabled() const { return enabled_; }
  /// Returns the scale as fp32 [1] on the device.
  const at::Tensor& scale() const { return scale_; }
  /// Divides summed gradients by the scale and adapts it, without waiting for the device. Returns
  /// fp32 [1] there: 1 where one of them is not finite, so that the weights must not change, else
  /// 0. Equal sums make equal decisions, so ranks need not agree.
  at::Tensor unscale(
      std::vector<Bucket>& buckets,
      const SumOverShards& over_shards = [](const at::Tensor& value) { return value; });
  /// Returns the counts so far. Waits for the device.
  LossScaling report() const;

 private:
  bool enabled_, dynamic_;
  double initial_;
  std::int64_t growth_interval_;
  at::Tensor scale_, steps_since_change_, skipped_;  ///< [1], on the device
};

}  // namespace scalemark
