// Provides host memory that a GPU copies from and to while it computes, as a tensor.
#pragma once

#include <ATen/ATen.h>

namespace scalemark {

/// Returns a host tensor like `like` (sizes, strides, type) in pinned memory with undefined values.
/// It must outlive the copies from and to it, since nothing waits for them. LibTorch's own pinned
/// tensors wait, by an event that is recorded while they are freed; after a fault of the device
/// that throws from a destructor, which ends the process before its record is written. Throws
/// CommError where the memory cannot be pinned.
at::Tensor pinned_tensor(const at::Tensor& like);

}  // namespace scalemark
