// Implements the loops of GELU for fp32 and bf16.
#include "models/kernels/gelu_loops.hpp"

#include "models/kernels/elements.hpp"
#include "models/kernels/exponential.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

struct Normal {
  float below;    ///< Phi(x), the probability of less
  float density;  ///< phi(x)
};

/// Phi within 8e-8 of 1 (Abramowitz and Stegun 1964, 7.1.26, of |x| / sqrt(2)); both share exp(-x^2
/// / 2).
SCALEMARK_INLINE Normal standard_normal(float x) {
  constexpr float kSlope = 0.3275911f * 0.70710678f, kInverseRootOf2Pi = 0.39894228f;
  const float bell = exp_below_zero(-0.5f * x * x);
  const float t = 1.f / (1.f + kSlope * (x < 0 ? -x : x));
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * bell;
  return {x < 0 ? tail : 1.f - tail, kInverseRootOf2Pi * bell};
}

template <typename T>
SCALEMARK_INLINE void gelu_of(const T* x, T* y, std::int64_t count) {
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = load(x[i]);
    store(y[i], value * standard_normal(value).below);
  }
}

template <typename T>
SCALEMARK_INLINE void gelu_both_ways(const T* x, T* y, T* dy, std::int64_t count) {
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = load(x[i]);
    const Normal at = standard_normal(value);
    store(y[i], value * at.below);
    store(dy[i], load(dy[i]) * (at.below + value * at.density));
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void gelu_forward(const float* x, float* y, std::int64_t count) {
  gelu_of(x, y, count);
}
SCALEMARK_VECTOR_LOOP void gelu_forward(const c10::BFloat16* x, c10::BFloat16* y,
                                        std::int64_t count) {
  gelu_of(x, y, count);
}
SCALEMARK_VECTOR_LOOP void gelu_backward(const float* x, float* y, float* dy, std::int64_t count) {
  gelu_both_ways(x, y, dy, count);
}
SCALEMARK_VECTOR_LOOP void gelu_backward(const c10::BFloat16* x, c10::BFloat16* y,
                                         c10::BFloat16* dy, std::int64_t count) {
  gelu_both_ways(x, y, dy, count);
}

}  // namespace scalemark
