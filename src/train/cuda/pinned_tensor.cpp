// Allocates pinned memory and wraps it as a tensor.
#include "train/cuda/pinned_tensor.hpp"

#include <memory>

#include "comm/cuda/pinned_memory.hpp"

namespace scalemark {

at::Tensor pinned_tensor(const at::Tensor& like) {
  const auto memory = std::make_shared<PinnedMemory>(like.storage().nbytes());
  return at::from_blob(
      memory->data(), like.sizes(), like.strides(), [memory](void*) {},
      at::TensorOptions().dtype(like.dtype()));
}

}  // namespace scalemark
