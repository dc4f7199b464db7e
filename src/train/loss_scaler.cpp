#include "train/loss_scaler.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>

namespace scalemark {
namespace {

/// A larger scale would overflow in the first layers and gain nothing.
constexpr double kLargest = 1 << 24;

}  // namespace

LossScaler::LossScaler(const ResolvedConfig& config, at::Device device)
    : enabled_(config.precision == Precision::fp16 && !config.forward_only),
      dynamic_(config.fp16_enable_auto_loss_scale),
      initial_(config.fp16_loss_scale),
      growth_interval_(config.fp16_inc_loss_scale_every_n) {
  if (!enabled_) return;
  const auto options = at::TensorOptions().device(device).dtype(at::kFloat);
  scale_ = at::full({1}, initial_, options);
  steps_since_change_ = at::zeros({1}, options.dtype(at::kInt));
  skipped_ = at::zeros({1}, options.dtype(at::kLong));
}

at::Tensor LossScaler::unscale(std::vector<Bucket>& buckets, const SumOverShards& over_shards) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const Bucket& bucket : buckets) gradients.push_back(bucket.gradients);
  at::Tensor found = at::zeros_like(scale_);
  at::_amp_foreach_non_finite_check_and_unscale_(
      gradients, found, scale_.to(at::kDouble).reciprocal().to(at::kFloat));
  found = over_shards(found).clamp_max(1).to(at::kFloat);
  skipped_ += found.to(at::kLong);
  if (!dynamic_) return found;
  at::_amp_update_scale_(scale_, steps_since_change_, found, /*scale_growth_factor=*/2.,
                         /*scale_backoff_factor=*/0.5, growth_interval_);
  scale_.clamp_(1., kLargest);
  return found;
}

LossScaling LossScaler::report() const {
  return {initial_, scale_.item<double>(), dynamic_, skipped_.item<std::int64_t>()};
}

}  // namespace scalemark
