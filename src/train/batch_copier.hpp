// Copies batches to the device while it computes, with a helper thread on the CPU and a second
// stream on CUDA.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

namespace scalemark {

/// A pair of tensors of equal shape, strides and type, which use all of their memory.
struct TensorCopy {
  at::Tensor from;  ///< in (pinned) host memory
  at::Tensor to;    ///< on the device
};

/// Seconds, summed over copies.
struct CopyTimes {
  double copy_seconds = 0;  ///< from the start of a copy to its end
  double wait_seconds = 0;  ///< time in which the device only waited for a copy
};

/// Copies tensors to the device, one copy at a time.
class BatchCopier {
 public:
  virtual ~BatchCopier() = default;
  /// Starts a copy after all work that the device was given so far, without waiting. Only one copy
  /// runs at a time: call wait() before the next.
  virtual void start(std::vector<TensorCopy> tensors) = 0;
  /// Orders all work that the device is given from now on after the copy.
  virtual void wait() = 0;
  /// Returns the times of the copies waited for since restart(). Waits for the device.
  virtual CopyTimes times() = 0;
  virtual void restart() = 0;
};

/// Makes a copier with a separate thread and memcpy, which is as fast as one core.
std::unique_ptr<BatchCopier> make_cpu_batch_copier();

}  // namespace scalemark
