// Computes the exact GELU (Hendrycks and Gimpel 2016), x Phi(x), for a layer that keeps only x.
#pragma once

#include <ATen/core/Tensor.h>

namespace scalemark {

/// fp32 or bf16 on the CPU, contiguous.
bool suits_gelu(const at::Tensor& x);

/// x Phi(x), as x; Phi is within 8e-8 of 1. Without a gradient.
at::Tensor gelu_fused(const at::Tensor& x);

/// The same again on the way back, where `dy`, its gradient, contiguous, becomes that of x, in the
/// same pass.
at::Tensor gelu_and_gradient(const at::Tensor& x, at::Tensor& dy);

}  // namespace scalemark
