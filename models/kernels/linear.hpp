// Computes x W^T + b with a weight gradient that is written directly into its place: where the gate
// takes gradients, the backward GEMM writes the flat buffer itself, and autograd never sees a
// tensor of the weight's size.
#pragma once

#include <torch/torch.h>

#include "models/parameter_gate.hpp"

namespace scalemark {

/// Maps x [..., in] with leaf [out, in] fp32 and bias [out], in the dtype of x or undefined, to
/// [..., out] in the dtype of x, computed with the gate's compute weight. `of_gelu` replaces x by
/// gelu(x); only x is then kept for the backward pass, where one of scalemark's kernels can compute
/// gelu(x) again.
at::Tensor linear_in_place(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                           const LayerGate& gate, bool of_gelu = false);

}  // namespace scalemark
