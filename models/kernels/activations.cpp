// Computes the activations of feed-forward networks and their gradients: the loops over elements,
// for fp32 and bf16, and their division among threads.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/BFloat16.h>

#include <cstdint>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// A piece of an activation's input and output. In the forward pass `gradient_of_y` is null.
template <typename T>
struct ActivationLoop {
  const T* x;
  const T* gate;  ///< of SwiGLU: x is the other factor
  T* y;
  const T* gradient_of_y;
  T* gradient_of_x;  ///< may be gradient_of_y where there is no gate
  T* gradient_of_gate;
  std::int64_t count;
};
void gelu(const ActivationLoop<float>& loop);
void gelu(const ActivationLoop<c10::BFloat16>& loop);
void gelu_tanh(const ActivationLoop<float>& loop);
void gelu_tanh(const ActivationLoop<c10::BFloat16>& loop);
void swiglu(const ActivationLoop<float>& loop);
void swiglu(const ActivationLoop<c10::BFloat16>& loop);

namespace {

/// The value and the slope of an activation at a place.
struct Point {
  float value, slope;
};

/// Computes x Phi(x). The distribution function Phi is within 8e-8 (Abramowitz and Stegun 1964,
/// 7.1.26, of |x| / sqrt(2)); it shares exp(-x^2 / 2) with the density.
SCALEMARK_INLINE Point gelu_at(float x) {
  constexpr float kSlope = 0.3275911f * 0.70710678f, kInverseRootOf2Pi = 0.39894228f;
  const float bell = exp_below_zero(-0.5f * x * x);
  const float t = 1.f / (1.f + kSlope * (x < 0 ? -x : x));
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * bell;
  const float below = x < 0 ? tail : 1.f - tail;
  return {x * below, below + x * (kInverseRootOf2Pi * bell)};
}

/// Computes 1 / (1 + exp(-x)).
SCALEMARK_INLINE float sigmoid(float x) {
  const float e = exp_below_zero(x < 0 ? x : -x);
  return (x < 0 ? e : 1.f) / (1.f + e);
}

/// Computes x / 2 (1 + tanh(u)) = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
SCALEMARK_INLINE Point gelu_tanh_at(float x) {
  constexpr float kTwice = 1.59576912f, kCube = 0.044715f;  // 2 sqrt(2 / pi)
  const float square = x * x, s = sigmoid(kTwice * x * (1.f + kCube * square));
  return {x * s, s + x * s * (1.f - s) * kTwice * (1.f + 3.f * kCube * square)};
}

/// Computes x sigmoid(x).
SCALEMARK_INLINE Point silu_at(float x) {
  const float s = sigmoid(x);
  return {x * s, s * (1.f + x * (1.f - s))};
}

template <typename T, typename At>
SCALEMARK_INLINE void run_plain(const ActivationLoop<T>& loop, const At& at) {
  const auto [x, gate, y, dy, dx, dgate, count] = loop;
  if (!dy) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) store(y[i], at(load(x[i])).value);
    return;
  }
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const Point point = at(load(x[i]));
    store(y[i], point.value);
    store(dx[i], load(dy[i]) * point.slope);
  }
}

template <typename T>
SCALEMARK_INLINE void run_gated(const ActivationLoop<T>& loop) {
  const auto [x, gate, y, dy, dx, dgate, count] = loop;
  if (!dy) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) store(y[i], silu_at(load(gate[i])).value * load(x[i]));
    return;
  }
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const Point point = silu_at(load(gate[i]));
    const float factor = load(x[i]), gradient = load(dy[i]);
    store(y[i], point.value * factor);
    store(dx[i], gradient * point.value);
    store(dgate[i], gradient * factor * point.slope);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void gelu(const ActivationLoop<float>& loop) { run_plain(loop, gelu_at); }
SCALEMARK_VECTOR_LOOP void gelu(const ActivationLoop<c10::BFloat16>& loop) {
  run_plain(loop, gelu_at);
}
SCALEMARK_VECTOR_LOOP void gelu_tanh(const ActivationLoop<float>& loop) {
  run_plain(loop, gelu_tanh_at);
}
SCALEMARK_VECTOR_LOOP void gelu_tanh(const ActivationLoop<c10::BFloat16>& loop) {
  run_plain(loop, gelu_tanh_at);
}
SCALEMARK_VECTOR_LOOP void swiglu(const ActivationLoop<float>& loop) { run_gated(loop); }
SCALEMARK_VECTOR_LOOP void swiglu(const ActivationLoop<c10::BFloat16>& loop) { run_gated(loop); }

namespace {

constexpr std::int64_t kElementsOfAThread = 8192;  ///< or more

template <typename T>
void run(Activation activation, const ActivationLoop<T>& loop) {
  activation == Activation::gelu ? gelu(loop) : gelu_tanh(loop);
}

/// Returns the activation of x. `dy`, where there is one, becomes the gradient of x.
template <typename T>
at::Tensor of_elements(Activation activation, const at::Tensor& x, at::Tensor* dy) {
  at::Tensor y = at::empty_like(x);
  const T* const from = x.const_data_ptr<T>();
  T* const to = y.mutable_data_ptr<T>();
  T* const gradient = dy ? dy->mutable_data_ptr<T>() : nullptr;
  at::parallel_for(0, x.numel(), kElementsOfAThread, [&](std::int64_t begin, std::int64_t end) {
    T* const piece = gradient ? gradient + begin : nullptr;
    run<T>(activation, {from + begin, nullptr, to + begin, piece, piece, nullptr, end - begin});
  });
  return y;
}

/// The same of an activation that makes a row of n of one of 2 n.
template <typename T>
at::Tensor of_halves(const at::Tensor& x, at::Tensor* dy) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  const std::int64_t n = shape.back() /= 2;
  at::Tensor y = at::empty(shape, x.options()), dx = dy ? at::empty_like(x) : at::Tensor();
  const T* const from = x.const_data_ptr<T>();
  T* const to = y.mutable_data_ptr<T>();
  const T* const of_y = dy ? dy->const_data_ptr<T>() : nullptr;
  T* const of_x = dy ? dx.mutable_data_ptr<T>() : nullptr;
  const std::int64_t rows = n == 0 ? 0 : y.numel() / n;
  at::parallel_for(0, rows, divided_up(kElementsOfAThread, std::max<std::int64_t>(n, 1)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const T* const gate = from + 2 * row * n;
                       T* const of_gate = of_x ? of_x + 2 * row * n : nullptr;
                       swiglu({gate + n, gate, to + row * n, of_y ? of_y + row * n : nullptr,
                               of_gate ? of_gate + n : nullptr, of_gate, n});
                     }
                   });
  if (dy) *dy = dx;
  return y;
}

template <typename T>
at::Tensor of_type(Activation activation, const at::Tensor& x, at::Tensor* dy) {
  return halves(activation) ? of_halves<T>(x, dy) : of_elements<T>(activation, x, dy);
}

at::Tensor computed(Activation activation, const at::Tensor& x, at::Tensor* dy) {
  return x.scalar_type() == at::kFloat ? of_type<float>(activation, x, dy)
                                       : of_type<c10::BFloat16>(activation, x, dy);
}

const char* name_of(Activation activation, bool backward) {
  switch (activation) {
    case Activation::gelu_tanh:
      return backward ? "scalemark::gelu_tanh_backward" : "scalemark::gelu_tanh";
    case Activation::swiglu:
      return backward ? "scalemark::swiglu_backward" : "scalemark::swiglu";
    default:
      return backward ? "scalemark::gelu_backward" : "scalemark::gelu";
  }
}

}  // namespace

bool suits_activation(const at::Tensor& x, Activation activation) {
  return (activation == Activation::gelu || activation == Activation::gelu_tanh ||
          activation == Activation::swiglu) &&
         suits_loops(x) && x.is_contiguous();
}

at::Tensor activation_fused(const at::Tensor& x, Activation activation) {
  return as_operator(name_of(activation, false), {x},
                     [&] { return computed(activation, x, nullptr); });
}

at::Tensor activation_and_gradient(const at::Tensor& x, at::Tensor& dy, Activation activation) {
  return as_operator(name_of(activation, true), {dy, x},
                     [&] { return computed(activation, x, &dy); });
}

}  // namespace scalemark
