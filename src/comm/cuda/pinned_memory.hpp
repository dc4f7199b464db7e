// Internal to cuda/ folders: host memory that a GPU copies from and to while it computes.
#pragma once

#include <cstddef>

#include "comm/cuda/check.hpp"

namespace scalemark {

/// It must outlive the copies from and to it.
class PinnedMemory {
 public:
  /// Throws CommError.
  explicit PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    check_cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc",
               "that can be pinned on the host");
  }
  /// Giving it back waits for the device, and fails where that has failed: while an exception
  /// unwinds the memory is left to the end of the process.
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
