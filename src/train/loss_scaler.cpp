#include "train/loss_scaler.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>

#include <algorithm>

namespace scalemark {
namespace {

/// Larger ones would overflow in the first layers and save nothing.
constexpr double kLargest = 1 << 24;

}  // namespace

LossScaler::LossScaler(const ResolvedConfig& config)
    : enabled_(config.precision == Precision::fp16 && !config.forward_only),
      dynamic_(config.fp16_enable_auto_loss_scale),
      initial_(enabled_ ? config.fp16_loss_scale : 1),
      scale_(initial_),
      growth_interval_(config.fp16_inc_loss_scale_every_n) {}

bool LossScaler::unscale(std::vector<Bucket>& buckets) {
  if (!enabled_) return true;
  std::vector<at::Tensor> gradients;
  for (const Bucket& bucket : buckets) gradients.push_back(bucket.gradients);
  const auto options = gradients.front().options();
  at::Tensor found = at::zeros({1}, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found,
                                                 at::full({1}, 1 / scale_, options));
  const bool finite = found.item<float>() == 0;
  if (!finite) ++skipped_;
  if (!dynamic_) return finite;
  steps_since_change_ = finite ? steps_since_change_ + 1 : 0;
  if (!finite) scale_ = std::max(1., scale_ / 2);
  if (steps_since_change_ == growth_interval_) {
    scale_ = std::min(scale_ * 2, kLargest);
    steps_since_change_ = 0;
  }
  return finite;
}

LossScaling LossScaler::report() const { return {initial_, scale_, dynamic_, skipped_}; }

}  // namespace scalemark
