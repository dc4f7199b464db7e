// Computes the maximum over windows of channels_last images, without the int64 indices that torch
// keeps.
#pragma once

#include <ATen/ATen.h>

#include "models/operator_set.hpp"

namespace scalemark {

/// fp32 or bf16 [N, C, H, W] in channels_last memory on the CPU, with a window of at most 15 pixels
/// a side, which may reach out of the image by less than its half.
bool suits_max_pool(const at::Tensor& x, const PoolWindow& window);

/// As at::max_pool2d, with its gradient; a window with NaN is NaN.
at::Tensor max_pool_fused(const at::Tensor& x, const PoolWindow& window);

}  // namespace scalemark
