// Divides a bucket into parts that are small enough for the caches, so that the later passes of an
// optimizer find them there. Internal to train/.
#pragma once

#include "train/flat_parameters.hpp"

namespace scalemark {

/// Equally long pieces of a bucket's tensors.
struct Part {
  at::Tensor weights, gradients;
  std::vector<at::Tensor> state;
  at::Tensor shadow;  ///< undefined in fp32

  /// Copies the weights to the shadow. Call it once they are final.
  void refresh_shadow() const {
    if (shadow.defined()) shadow.copy_(weights);
  }
};

/// The number of elements of a part on the CPU.
inline constexpr std::int64_t kPartElements = 1 << 18;

/// Returns the elements [begin, begin + count) of a bucket, in order, in parts of at most
/// `largest`.
std::vector<Part> parts_of(const Bucket& bucket, std::int64_t begin, std::int64_t count,
                           std::int64_t largest);

}  // namespace scalemark
