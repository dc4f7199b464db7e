// See pinned_tensor.hpp.
#include "train/cuda/pinned_tensor.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "error.hpp"

namespace scalemark {

at::Tensor pinned_tensor(const at::Tensor& like) {
  void* data = nullptr;
  const std::size_t bytes = like.storage().nbytes();
  if (const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
      error != cudaSuccess)
    throw RunError(fmt::format("{} bytes of host memory cannot be pinned: {}", bytes,
                               cudaGetErrorString(error)));
  // A device that has failed fails this call too: the memory goes with the process.
  const auto free = [](void* memory) { cudaFreeHost(memory); };
  return at::from_blob(data, like.sizes(), like.strides(), free,
                       at::TensorOptions().dtype(like.dtype()));
}

}  // namespace scalemark
