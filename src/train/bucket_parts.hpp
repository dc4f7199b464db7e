// Internal to train/: pieces of a bucket, small enough that an optimizer's later passes find them
// in cache.
#pragma once

#include "train/flat_parameters.hpp"

namespace scalemark {

/// Equally long pieces of a bucket's tensors.
struct Part {
  at::Tensor weights, gradients;
  std::vector<at::Tensor> state;
  at::Tensor shadow;  ///< undefined in fp32

  /// Once the weights are final.
  void refresh_shadow() const {
    if (shadow.defined()) shadow.copy_(weights);
  }
};

/// Elements of a part on the CPU.
inline constexpr std::int64_t kPartElements = 1 << 18;

/// The elements [begin, begin + count) of a bucket, in order, in parts of at most `largest`.
std::vector<Part> parts_of(const Bucket& bucket, std::int64_t begin, std::int64_t count,
                           std::int64_t largest);

}  // namespace scalemark
