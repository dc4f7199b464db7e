// Provides host memory that a GPU copies from and to while it computes. It is internal to cuda/
// folders.
#pragma once

#include <cstddef>

#include "comm/cuda/check.hpp"

namespace scalemark {

/// Owns pinned host memory. It must outlive the copies from and to it.
class PinnedMemory {
 public:
  /// Throws CommError where the memory cannot be allocated.
  explicit PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    check_cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc",
               "that can be pinned on the host");
  }
  /// Frees the memory. This waits for the device, and fails where the device has failed, so while
  /// an exception unwinds, the memory is kept until the end of the process.
  ~PinnedMemory() {
    if (!unwinding_) cudaFreeHost(data_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Unwinding unwinding_;
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace scalemark
