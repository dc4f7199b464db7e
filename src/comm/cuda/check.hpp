// Internal to cuda/ folders: results of CUDA and NCCL calls as errors, and what owns an event.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <exception>
#include <string>

#include "error.hpp"

namespace scalemark {

/// The runtime keeps the error of a call until somebody asks for it: LibTorch would take it for
/// that of its next kernel.
inline void forget_last_error() { static_cast<void>(cudaGetLastError()); }

/// Throws CommError; `memory` is what the call takes from.
inline void check_cuda(cudaError_t result, const char* call, const char* memory = "on the GPU") {
  if (result == cudaSuccess) return;
  forget_last_error();
  std::string words = cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) words = std::string("out of memory ") + memory;
  throw CommError(std::string(call) + " failed: " + words);
}

/// The name of the error, and what NCCL says of the last one that it met.
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

/// Whether an exception unwinds what was made with it: then a destructor must not wait for the
/// device, which may wait for peers that nobody has told.
class Unwinding {
 public:
  explicit operator bool() const { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};

/// Owns a CUDA event that knows its time.
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

}  // namespace scalemark
