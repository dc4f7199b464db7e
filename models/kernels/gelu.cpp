// Computes GELU: the loops over elements, for fp32 and bf16, and their division among threads.
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/BFloat16.h>

#include <cstdint>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// Computes y = gelu(x).
void gelu_forward(const float* x, float* y, std::int64_t count);
void gelu_forward(const c10::BFloat16* x, c10::BFloat16* y, std::int64_t count);

/// Computes y = gelu(x) and multiplies dy by gelu'(x).
void gelu_backward(const float* x, float* y, float* dy, std::int64_t count);
void gelu_backward(const c10::BFloat16* x, c10::BFloat16* y, c10::BFloat16* dy, std::int64_t count);

namespace {

struct Normal {
  float below;    ///< Phi(x), the probability of less
  float density;  ///< phi(x)
};

/// Computes the distribution function Phi within 8e-8 (Abramowitz and Stegun 1964, 7.1.26, of |x| /
/// sqrt(2)) and the density of the normal distribution, which share exp(-x^2 / 2).
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

namespace {

constexpr std::int64_t kElementsOfAThread = 8192;  ///< or more

/// Returns gelu(x). `dy`, where there is one, becomes the gradient of x.
template <typename T>
at::Tensor in_one_pass(const at::Tensor& x, at::Tensor* dy) {
  at::Tensor y = at::empty_like(x);
  const T* const from = x.const_data_ptr<T>();
  T* const to = y.mutable_data_ptr<T>();
  T* const gradient = dy ? dy->mutable_data_ptr<T>() : nullptr;
  at::parallel_for(0, x.numel(), kElementsOfAThread, [&](std::int64_t begin, std::int64_t end) {
    if (gradient)
      gelu_backward(from + begin, to + begin, gradient + begin, end - begin);
    else
      gelu_forward(from + begin, to + begin, end - begin);
  });
  return y;
}

at::Tensor of_its_type(const at::Tensor& x, at::Tensor* dy) {
  return x.scalar_type() == at::kFloat ? in_one_pass<float>(x, dy)
                                       : in_one_pass<c10::BFloat16>(x, dy);
}

}  // namespace

bool suits_gelu(const at::Tensor& x) { return suits_loops(x) && x.is_contiguous(); }

at::Tensor gelu_fused(const at::Tensor& x) {
  return as_operator("scalemark::gelu", {x}, [&] { return of_its_type(x, nullptr); });
}

at::Tensor gelu_and_gradient(const at::Tensor& x, at::Tensor& dy) {
  return as_operator("scalemark::gelu_backward", {dy, x}, [&] { return of_its_type(x, &dy); });
}

}  // namespace scalemark
