// Measured GEMM rate: the roof of the roofline, and a preflight check.
#pragma once

#include <ATen/ATen.h>

#include "train/device_backend.hpp"

namespace scalemark {

struct GemmRates {
  double median = 0;  ///< FLOP/s of the median product: what the device can do
  double mean =
      0;  ///< of all products over all seconds: what it does, a CPU quota's pauses included
};

/// FLOP/s of C = A x B, square `size`, in `dtype`, repeated for at least `seconds`.
GemmRates measure_gemm(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                       double seconds);

/// Its median.
double measure_gemm_flops(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                          double seconds);

// Measured rate of a small convolution, forward and backward: what an image model can at most do
// where a precision has fast matrix products and no fast convolutions.

/// FLOP/s of one 3x3 convolution of 64 to 64 channels on a 28x28 image, with both gradients
/// where it is for training.
double measure_convolution_flops(DeviceBackend& device, at::ScalarType dtype, bool training);

}  // namespace scalemark
