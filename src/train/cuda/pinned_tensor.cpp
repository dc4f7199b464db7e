// See pinned_tensor.hpp.
#include "train/cuda/pinned_tensor.hpp"

#include "comm/cuda/check.hpp"

namespace scalemark {

at::Tensor pinned_tensor(const at::Tensor& like) {
  void* data = nullptr;
  const std::size_t bytes = like.storage().nbytes();
  check_cuda(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "cudaHostAlloc",
             "that can be pinned on the host");
  // It waits for the device, and fails where that has failed: the memory goes with the process.
  const auto free = [unwinding = Unwinding()](void* memory) {
    if (!unwinding) cudaFreeHost(memory);
  };
  return at::from_blob(data, like.sizes(), like.strides(), free,
                       at::TensorOptions().dtype(like.dtype()));
}

}  // namespace scalemark
