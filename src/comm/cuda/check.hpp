// Internal to cuda/ folders: results of CUDA and NCCL calls as errors.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "error.hpp"

namespace scalemark {

inline void check_cuda(cudaError_t result, const char* call) {
  if (result != cudaSuccess)
    throw CommError(std::string(call) + " failed: " + cudaGetErrorString(result));
}

inline void check_nccl(ncclResult_t result, const char* call) {
  if (result != ncclSuccess)
    throw CommError(std::string(call) + " failed: " + ncclGetErrorString(result));
}

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
