// x W^T + b whose weight gradient goes straight into its place: where the gate takes gradients, the
// backward GEMM writes the flat buffer itself, and autograd never sees a tensor of the weight's
// size.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "models/parameter_gate.hpp"

namespace scalemark {

/// x [..., in], leaf [out, in] fp32, bias [out] in the dtype of x or undefined -> [..., out] in the
/// dtype of x, computed with the gate's compute weight.
at::Tensor matrix_product(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                          const LayerGate& gate);

/// Rows of the table `leaf` [rows, width]: int64 [...] -> [..., width] in the compute dtype. The
/// gradient goes to the gate as rows where it takes them, without a dense tensor.
at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices, const LayerGate& gate);

}  // namespace scalemark
