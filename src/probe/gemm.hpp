// Measured GEMM rate: the roof of the roofline, and a preflight check.
#pragma once

#include <ATen/ATen.h>

#include "train/device_backend.hpp"

namespace scalemark {

/// FLOP/s of C = A x B, square `size`, in `dtype`, median of repeated products over at least
/// `seconds`.
double measure_gemm_flops(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                          double seconds);

}  // namespace scalemark
