// x W^T + b whose weight gradient goes straight into its place: where the gate takes gradients, the
// backward GEMM writes the flat buffer itself, and autograd never sees a tensor of the weight's
// size.
#pragma once

#include <torch/torch.h>

#include "models/parameter_gate.hpp"

namespace scalemark {

/// x [..., in], leaf [out, in] fp32, bias [out] in the dtype of x or undefined -> [..., out] in the
/// dtype of x, computed with the gate's compute weight. `of_gelu`: of gelu(x) in place of x; of
/// both only x is kept for the way back, where a kernel of our own can make the other again.
at::Tensor linear_in_place(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                           const LayerGate& gate, bool of_gelu = false);

}  // namespace scalemark
