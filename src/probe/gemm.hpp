// Measures the GEMM rate, which is the compute peak of the roofline and a preflight check.
#pragma once

#include <ATen/ATen.h>

#include "train/device_backend.hpp"

namespace scalemark {

/// The rates of repeated matrix products.
struct GemmRates {
  double median = 0;  ///< FLOP/s of the median product: what the device can do
  double mean = 0;    ///< all products over all seconds, including the pauses of a CPU quota
};

/// Returns the FLOP/s of C = A x B for square matrices of `size` in `dtype`, repeated for at least
/// `seconds`.
GemmRates measure_gemm(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                       double seconds);

/// Returns the median of the rates of measure_gemm().
double measure_gemm_flops(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                          double seconds);

// Measures the rate of a small convolution, forward and backward. It bounds the speed of an image
// model where a precision has fast matrix products but no fast convolutions.

/// Returns the FLOP/s of one 3x3 convolution of 64 to 64 channels on a 28x28 image. With `training`
/// both gradients are included.
double measure_convolution_flops(DeviceBackend& device, at::ScalarType dtype, bool training);

}  // namespace scalemark
