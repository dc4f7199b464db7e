// Implements the loops row by row, in the memory order of the activations: the sums of a row's
// channels are in the first-level cache, and the processor prefetches a contiguous stream best.
#include "models/kernels/batch_norm_loops.hpp"

#include <algorithm>

#include "models/kernels/elements.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

/// Rows summed in fp32 before their sums are added up in float64.
constexpr std::int64_t kGroup = 64;

/// sum += x - pivot and square += (x - pivot)^2 over the rows.
template <typename T>
SCALEMARK_INLINE void add_moments(const T* x, RowShape shape, const float* pivot, float* sum,
                                  float* square) {
  for (std::int64_t r = 0; r < shape.rows; ++r, x += shape.channels) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const float v = load(x[c]) - pivot[c];
      sum[c] += v;
      square[c] += v * v;
    }
  }
}

/// Groups are combined as in Chan et al. 1979. Differences are taken from the mean so far, at first
/// from that of the first group, so that rounding is relative to the variance, however far the mean
/// lies from zero.
template <typename T>
SCALEMARK_INLINE void moments(const MomentsOfRows<T>& loop) {
  const auto [rows, channels] = loop.shape;
  double *const mean = loop.mean, *const squares = loop.squares;
  float *const pivot = loop.scratch, *const sum = pivot + channels, *const square = sum + channels;
  std::fill(mean, mean + channels, 0.);
  std::fill(squares, squares + channels, 0.);
  std::fill(pivot, square + channels, 0.f);
  const std::int64_t first = std::min(kGroup, rows);
  add_moments(loop.x, {first, channels}, pivot, sum, square);
  for (std::int64_t c = 0; c < channels; ++c) pivot[c] = sum[c] / static_cast<float>(first);
  for (std::int64_t row = 0; row < rows; row += kGroup) {
    const std::int64_t count = std::min(kGroup, rows - row);
    std::fill(sum, sum + channels, 0.f);
    std::fill(square, square + channels, 0.f);
    add_moments(loop.x + row * channels, {count, channels}, pivot, sum, square);
    const double each = 1. / static_cast<double>(count);
    const double share = static_cast<double>(count) / static_cast<double>(row + count);
    const double weight = static_cast<double>(row) * share;
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      const double s = sum[c];
      const double delta = pivot[c] + s * each - mean[c];
      squares[c] += square[c] - s * s * each + delta * delta * weight;
      mean[c] += delta * share;
      pivot[c] = static_cast<float>(mean[c]);
    }
  }
}

template <bool relu, bool add, typename T>
SCALEMARK_INLINE void normalise(const NormaliseRows<T>& loop) {
  const auto [rows, channels] = loop.shape;
  const auto [mean, scale, shift] = loop.scales;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const x = loop.x + r * channels;
    const T* const residual = add ? loop.residual + r * channels : x;
    T* const y = loop.y + r * channels;
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      float z = (load(x[c]) - mean[c]) * scale[c] + shift[c];
      if constexpr (add) z += load(residual[c]);
      if constexpr (relu) z = z < 0 ? 0.f : z;  // NaN stays
      store(y[c], z);
    }
  }
}

template <typename T>
SCALEMARK_INLINE void normalise_any(const NormaliseRows<T>& loop) {
  if (loop.residual)
    loop.relu ? normalise<true, true>(loop) : normalise<false, true>(loop);
  else
    loop.relu ? normalise<true, false>(loop) : normalise<false, false>(loop);
}

/// sum += g and product += g (x - mean) over the rows [first, first + count).
template <Mask mask, typename T>
SCALEMARK_INLINE void add_gradients(const GradientSumsOfRows<T>& loop, std::int64_t first,
                                    std::int64_t count, float* sum, float* product) {
  const std::int64_t channels = loop.shape.channels;
  const auto [mean, scale, shift] = loop.scales;
  for (std::int64_t r = first; r < first + count; ++r) {
    const T *const dy = loop.dy + r * channels, *const x = loop.x + r * channels;
    const T* const y = mask == Mask::output ? loop.y + r * channels : x;
    T* const g = mask == Mask::output ? loop.g + r * channels : nullptr;
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      const float v = load(x[c]) - mean[c];
      float d = load(dy[c]);
      if constexpr (mask == Mask::input) d = v * scale[c] + shift[c] <= 0 ? 0.f : d;
      if constexpr (mask == Mask::output) {
        d = load(y[c]) <= 0 ? 0.f : d;
        store(g[c], d);
      }
      sum[c] += d;
      product[c] += d * v;
    }
  }
}

template <Mask mask, typename T>
SCALEMARK_INLINE void gradient_sums(const GradientSumsOfRows<T>& loop) {
  const auto [rows, channels] = loop.shape;
  float *const sum = loop.scratch, *const product = sum + channels;
  std::fill(loop.sum, loop.sum + channels, 0.);
  std::fill(loop.product, loop.product + channels, 0.);
  for (std::int64_t row = 0; row < rows; row += kGroup) {
    std::fill(sum, sum + channels, 0.f);
    std::fill(product, product + channels, 0.f);
    add_gradients<mask>(loop, row, std::min(kGroup, rows - row), sum, product);
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      loop.sum[c] += sum[c];
      loop.product[c] += product[c];
    }
  }
}

template <typename T>
SCALEMARK_INLINE void gradient_sums_any(const GradientSumsOfRows<T>& loop) {
  if (loop.mask == Mask::none) return gradient_sums<Mask::none>(loop);
  loop.mask == Mask::input ? gradient_sums<Mask::input>(loop) : gradient_sums<Mask::output>(loop);
}

template <bool relu, typename T>
SCALEMARK_INLINE void input_gradient(const InputGradientOfRows<T>& loop) {
  const auto [rows, channels] = loop.shape;
  const auto [mean, scale, shift] = loop.scales;
  const float *const slope = loop.slope, *const offset = loop.offset;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T *const g = loop.g + r * channels, *const x = loop.x + r * channels;
    T* const dx = loop.dx + r * channels;
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      const float v = load(x[c]) - mean[c];
      float d = load(g[c]);
      if constexpr (relu) d = v * scale[c] + shift[c] <= 0 ? 0.f : d;
      store(dx[c], d * scale[c] + (v * slope[c] + offset[c]));
    }
  }
}

template <typename T>
SCALEMARK_INLINE void input_gradient_any(const InputGradientOfRows<T>& loop) {
  loop.relu ? input_gradient<true>(loop) : input_gradient<false>(loop);
}

}  // namespace

SCALEMARK_VECTOR_LOOP void run(const MomentsOfRows<float>& loop) { moments(loop); }
SCALEMARK_VECTOR_LOOP void run(const MomentsOfRows<c10::BFloat16>& loop) { moments(loop); }
SCALEMARK_VECTOR_LOOP void run(const NormaliseRows<float>& loop) { normalise_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const NormaliseRows<c10::BFloat16>& loop) { normalise_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const GradientSumsOfRows<float>& loop) { gradient_sums_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const GradientSumsOfRows<c10::BFloat16>& loop) {
  gradient_sums_any(loop);
}
SCALEMARK_VECTOR_LOOP void run(const InputGradientOfRows<float>& loop) { input_gradient_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const InputGradientOfRows<c10::BFloat16>& loop) {
  input_gradient_any(loop);
}

}  // namespace scalemark
