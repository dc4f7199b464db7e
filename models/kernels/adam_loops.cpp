// See adam_loops.hpp.
#include "models/kernels/adam_loops.hpp"

#include <cmath>

#include "models/kernels/elements.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

template <bool shadow>
SCALEMARK_INLINE void adam(const AdamElements& elements, const AdamRates& rates) {
  const auto [weights, gradients, mean, square, narrow, count] = elements;
  const auto [of_mean, of_square, decay, shrink, rate, correction, epsilon] = rates;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    float w = weights[i];
    const float g = gradients[i] + decay * w;
    const float m = mean[i] + of_mean * (g - mean[i]);
    const float s = square[i] + of_square * (g * g - square[i]);
    w = shrink * w - rate * m / (std::sqrt(s) / correction + epsilon);
    mean[i] = m;
    square[i] = s;
    weights[i] = w;
    if constexpr (shadow) store(narrow[i], w);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void run(const AdamElements& elements, const AdamRates& rates) {
  elements.shadow ? adam<true>(elements, rates) : adam<false>(elements, rates);
}

}  // namespace scalemark
