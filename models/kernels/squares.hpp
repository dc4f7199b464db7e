// The norm of a flat tensor on the CPU without the fp64 copy that LibTorch's makes of it.
#pragma once

#include <ATen/core/Tensor.h>

namespace scalemark {

/// 2-norm of fp32 [n] in CPU memory, contiguous: fp64 scalar, with squares summed in fp64. The sum
/// does not depend on the number of threads: ranks that hold the same values get the same bits.
at::Tensor norm_of_blocks(const at::Tensor& flat);

}  // namespace scalemark
