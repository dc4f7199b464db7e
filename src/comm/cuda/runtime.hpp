// Turns results of CUDA and NCCL calls into errors, and owns events and the host memory that a GPU
// copies from and to while it computes. It is internal to cuda/ folders.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <exception>
#include <string>

#include "error.hpp"

namespace scalemark {

/// Clears the error of the last call. The runtime keeps it until it is read, and LibTorch would
/// attribute it to its next kernel.
inline void forget_last_error() { static_cast<void>(cudaGetLastError()); }

/// Throws CommError where the call failed. `memory` names the memory that the call allocates.
inline void check_cuda(cudaError_t result, const char* call, const char* memory = "on the GPU") {
  if (result == cudaSuccess) return;
  forget_last_error();
  std::string words = cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) words = std::string("out of memory ") + memory;
  throw CommError(std::string(call) + " failed: " + words);
}

/// Returns the name of the error, and NCCL's text for its last one.
inline std::string nccl_words(ncclResult_t result) {
  const std::string detail = ncclGetLastError(nullptr);
  std::string words = ncclGetErrorString(result);
  if (detail.find("out of memory") != std::string::npos)
    words = "out of memory on the GPU: " + words;
  return detail.empty() ? words : words + " (" + detail + ")";
}

inline void check_nccl(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) throw CommError(std::string(call) + " failed: " + nccl_words(result));
}

/// Tells whether an exception unwinds the object that was made with it. A destructor must then not
/// wait for the device, which may wait for peers that have not been told of the failure.
class Unwinding {
 public:
  explicit operator bool() const { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};

/// Owns a CUDA event with timing.
class CudaEvent {
 public:
  CudaEvent() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

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
