// Implements the loops of max pooling over the channels of one pixel.
#include "models/kernels/max_pool_loops.hpp"

#include <algorithm>

#include "models/kernels/elements.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

template <bool places, typename T>
SCALEMARK_INLINE void maximum(const MaxOfPixels<T>& loop) {
  float *const best = loop.scratch, *const which = best + loop.channels;
  for (std::int64_t c = 0; c < loop.channels; ++c) best[c] = load(loop.pixels[0][c]);
  if constexpr (places) std::fill(which, which + loop.channels, loop.numbers[0]);
  for (int i = 1; i < loop.count; ++i) {
    const T* const x = loop.pixels[i];
    const float number = loop.numbers[i];
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < loop.channels; ++c) {
      const float v = load(x[c]);
      const bool higher = (v > best[c]) | (v != v);
      best[c] = higher ? v : best[c];
      if constexpr (places) which[c] = higher ? number : which[c];
    }
  }
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < loop.channels; ++c) store(loop.y[c], best[c]);
  if constexpr (places)
    for (std::int64_t c = 0; c < loop.channels; ++c)
      loop.place[c] = static_cast<std::uint8_t>(static_cast<int>(which[c]));
}

template <typename T>
SCALEMARK_INLINE void maximum_any(const MaxOfPixels<T>& loop) {
  loop.place ? maximum<true>(loop) : maximum<false>(loop);
}

template <typename T>
SCALEMARK_INLINE void gradient(const GradientOfPixel<T>& loop) {
  float* const sum = loop.scratch;
  std::fill(sum, sum + loop.channels, 0.f);
  for (int i = 0; i < loop.count; ++i) {
    const T* const dy = loop.dy[i];
    const std::uint8_t* const place = loop.place[i];
    const int number = loop.numbers[i];
    SCALEMARK_INDEPENDENT
    for (std::int64_t c = 0; c < loop.channels; ++c)
      sum[c] += static_cast<int>(place[c]) == number ? load(dy[c]) : 0.f;
  }
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < loop.channels; ++c) store(loop.dx[c], sum[c]);
}

}  // namespace

SCALEMARK_VECTOR_LOOP void run(const MaxOfPixels<float>& loop) { maximum_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const MaxOfPixels<c10::BFloat16>& loop) { maximum_any(loop); }
SCALEMARK_VECTOR_LOOP void run(const GradientOfPixel<float>& loop) { gradient(loop); }
SCALEMARK_VECTOR_LOOP void run(const GradientOfPixel<c10::BFloat16>& loop) { gradient(loop); }

}  // namespace scalemark
