// Draws what dropout multiplies by, for tests that compute the same without it.
#pragma once

#include <torch/torch.h>

#include "models/kernels/kernels.hpp"

namespace scalemark {

/// What dropout of these sizes multiplies by, with the key that the next call draws.
inline at::Tensor next_factors(at::IntArrayRef sizes, double probability) {
  const std::int64_t count = c10::multiply_integers(sizes);
  std::vector<float> buffer;
  const float* const factors = DropFactors(draw_dropout_key(), probability).of(0, count, buffer);
  return at::tensor(at::ArrayRef<float>(factors, static_cast<std::size_t>(count)))
      .view(sizes)
      .to(at::kDouble);
}

}  // namespace scalemark
