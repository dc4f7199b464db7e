// Copies batches to the device while it computes: a helper thread on the CPU, a second stream on
// CUDA.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

namespace scalemark {

/// Tensors of equal shape, strides and type, all of their memory in use.
struct TensorCopy {
  at::Tensor from;  ///< in (pinned) host memory
  at::Tensor to;    ///< on the device
};

/// Seconds, summed over copies.
struct CopyTimes {
  double copy_seconds = 0;  ///< from the start of a copy to its end
  double wait_seconds = 0;  ///< in which the device had nothing to do but wait for one
};

class BatchCopier {
 public:
  virtual ~BatchCopier() = default;
  /// Starts after everything that the device was asked for so far, and lets it go on. One copy at a
  /// time: wait() before the next.
  virtual void start(std::vector<TensorCopy> tensors) = 0;
  /// What the device is asked for from now on sees the copy.
  virtual void wait() = 0;
  /// Of the copies waited for since restart(); waits for the device.
  virtual CopyTimes times() = 0;
  virtual void restart() = 0;
};

/// A thread of its own and memcpy: as fast as one core.
std::unique_ptr<BatchCopier> make_cpu_batch_copier();

}  // namespace scalemark
