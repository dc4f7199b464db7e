// Copies gradients in bf16 into their place in fp32.
#pragma once

#include <ATen/ATen.h>

namespace scalemark {

/// to = from, of equal shapes. bf16 to fp32 on the CPU, both contiguous and large: past the caches,
/// for nobody reads a gradient before its whole bucket is there, and a line that is written whole
/// need not be read. Anything else: at::Tensor::copy_().
void widen(const at::Tensor& from, at::Tensor& to);

}  // namespace scalemark
