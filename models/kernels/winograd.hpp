// Computes convolutions of 3 x 3 by Winograd's minimal filtering F(2 x 2, 3 x 3) (Lavin and Gray
// 2016): four pixels for 16 multiplications a channel instead of 36, as matrix products over
// channels.
#pragma once

#include <torch/torch.h>

namespace scalemark {

/// Whether a convolution of x [N, in, H, W] with weight [out, in, 3, 3], stride 1 and padding 1 is
/// computed so: fp32 in CPU memory, where there are enough channels and tiles to win.
bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                    at::IntArrayRef padding);

struct WinogradFilters {
  at::Tensor values;          ///< [16, panels of outputs, in, outputs of a panel]
  std::int64_t channels = 0;  ///< of the result
};

/// The transformed weight [out, in, 3, 3]. `mirrored`: of the convolution that takes a gradient of
/// the result back to x.
WinogradFilters winograd_filters(const at::Tensor& weight, bool mirrored = false);

/// The convolution with `filters` + bias [out] (undefined: none), max(., 0) with `relu`:
/// [N, in, H, W] -> [N, out, H, W], channels_last; no gradients. `residual` (undefined: none), like
/// the result, is added before and written over.
at::Tensor winograd_conv2d(const at::Tensor& x, const WinogradFilters& filters,
                           const at::Tensor& bias, bool relu = false,
                           const at::Tensor& residual = {});

/// x (weight [out, in, 3, 3]) + bias (undefined: none), with gradients. That of the weight is
/// torch's.
at::Tensor winograd_conv2d_trained(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias);

}  // namespace scalemark
