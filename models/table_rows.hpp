// Lookups in a table of vectors whose gradient the gate may collect as rows.
#pragma once

#include <torch/torch.h>

#include "models/parameter_gate.hpp"

namespace scalemark {

/// Returns rows of the table `leaf` [rows, width]: int64 [...] -> [..., width] in the compute
/// dtype. The gradient goes to the gate as rows where it takes them, without a dense tensor.
at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices, const LayerGate& gate);

}  // namespace scalemark
