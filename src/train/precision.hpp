// Maps precisions to LibTorch's types.
#pragma once

#include <ATen/ATen.h>

#include "config/run_config.hpp"

namespace scalemark {

/// Returns the type of activations and of the weights that layers compute with. tf32 is fp32 in
/// memory: the GPU's matrix units round it as they read (DeviceBackend::set_precision). int8 is
/// fp32 between its layers.
at::ScalarType compute_dtype(Precision precision);

}  // namespace scalemark
