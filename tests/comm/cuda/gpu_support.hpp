// What tests of several ranks on GPUs share. The GPUs may be fakes (tests/comm/fakes).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "comm/cuda/runtime.hpp"
#include "comm/rank_group.hpp"

namespace scalemark::testing {

/// The GPU of this rank; -1 where there is none. Where ranks have to share one, NCCL, which refuses
/// that, is made to take each for a host of its own: they meet over a socket. Before the first call
/// of NCCL.
inline int gpu_of(const RankGroup& ranks) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return -1;
  if (ranks.local_size() > gpus) {
    setenv("NCCL_HOSTID", ("rank-" + std::to_string(ranks.rank())).c_str(), 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  const int mine = ranks.local_rank() % gpus;
  check_cuda(cudaSetDevice(mine), "cudaSetDevice");
  return mine;
}

class GpuStream {
 public:
  GpuStream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~GpuStream() { cudaStreamDestroy(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Elements in GPU memory; copies are queued on a stream.
template <typename T>
class OnGpu {
 public:
  explicit OnGpu(std::size_t count) : count_(count) {
    check_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  /// It may wait for all that the device does, so not while an exception unwinds.
  ~OnGpu() {
    if (!unwinding_) cudaFree(data_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  void* data() const { return data_; }
  std::size_t count() const { return count_; }
  void put(const std::vector<T>& values, cudaStream_t stream) const {
    check_cuda(
        cudaMemcpyAsync(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
  }
  void get(std::vector<T>& values, cudaStream_t stream) const {
    check_cuda(
        cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  }

 private:
  Unwinding unwinding_;
  std::size_t count_;
  void* data_ = nullptr;
};

}  // namespace scalemark::testing
