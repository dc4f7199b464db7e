// A step of Adam on the CPU in one pass over memory, which is what it costs; LibTorch's leaves the
// shadow to another one.
#pragma once

#include "models/operator_set.hpp"

namespace scalemark {

/// All of `all` in CPU memory, contiguous; fp32, and the shadow bf16.
void adam_in_one_pass(const AdamTensors& all, const AdamRates& rates);

}  // namespace scalemark
