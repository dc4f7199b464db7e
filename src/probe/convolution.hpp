// Measured rate of a small convolution, forward and backward: what an image model can at most do
// where a precision has fast matrix products and no fast convolutions.
#pragma once

#include <ATen/ATen.h>

#include "train/device_backend.hpp"

namespace scalemark {

/// FLOP/s of one 3x3 convolution of 64 to 64 channels on a 28x28 image, with both gradients
/// where it is for training.
double measure_convolution_flops(DeviceBackend& device, at::ScalarType dtype, bool training);

}  // namespace scalemark
