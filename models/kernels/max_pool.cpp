// Computes max pooling and its gradient: the loops over the channels of one pixel, for fp32 and
// bf16, and the division of the pixels among threads, each pixel with all of its channels.
#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

inline constexpr int kMostPixels = 15 * 15;  ///< of a window

/// Computes y, the maximum over `count` pixels of a window, and `place`, the number of the pixel
/// that has it.
template <typename T>
struct MaxOfPixels {
  const T* pixels[kMostPixels];
  std::uint8_t numbers[kMostPixels];
  int count;
  std::int64_t channels;
  float* scratch;  ///< [2, channels]
  T* y;
  std::uint8_t* place;  ///< null: nobody asks
};
void run(const MaxOfPixels<float>& loop);
void run(const MaxOfPixels<c10::BFloat16>& loop);

/// Computes dx, the sum of dy over the windows whose maximum the pixel has.
template <typename T>
struct GradientOfPixel {
  const T* dy[kMostPixels];
  const std::uint8_t* place[kMostPixels];
  std::uint8_t numbers[kMostPixels];  ///< of the pixel in each window
  int count;
  std::int64_t channels;
  float* scratch;  ///< [channels]
  T* dx;
};
void run(const GradientOfPixel<float>& loop);
void run(const GradientOfPixel<c10::BFloat16>& loop);

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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The pixels of a batch in channels_last memory.
struct PixelGrid {
  std::int64_t images, height, width, channels;

  explicit PixelGrid(const at::Tensor& x)
      : images(x.size(0)), height(x.size(2)), width(x.size(3)), channels(x.size(1)) {}
  std::int64_t count() const { return images * height * width; }
  /// Returns the offset of the first channel of a pixel.
  std::int64_t offset(std::int64_t n, std::int64_t y, std::int64_t x) const {
    return ((n * height + y) * width + x) * channels;
  }
};

/// Calls work(image, y, x, scratch of 2 * channels floats) for each pixel, in their order.
template <typename Work>
void for_each_pixel(const PixelGrid& grid, const Work& work) {
  at::parallel_for(0, grid.images * grid.height, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(2 * grid.channels));
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t x = 0; x < grid.width; ++x)
        work(row / grid.height, row % grid.height, x, scratch.data());
  });
}

template <typename T>
void pool(const at::Tensor& x, const PoolWindow& window, at::Tensor& y, at::Tensor& places) {
  const PixelGrid from(x), to(y);
  const T* const in = x.const_data_ptr<T>();
  T* const out = y.mutable_data_ptr<T>();
  std::uint8_t* const place = places.defined() ? places.mutable_data_ptr<std::uint8_t>() : nullptr;
  for_each_pixel(to, [&](std::int64_t n, std::int64_t row, std::int64_t column, float* scratch) {
    const std::int64_t top = row * window.stride - window.padding;
    const std::int64_t left = column * window.stride - window.padding;
    MaxOfPixels<T> loop;
    loop.count = 0;
    for (std::int64_t i = std::max<std::int64_t>(0, -top);
         i < std::min(window.size, from.height - top); ++i)
      for (std::int64_t j = std::max<std::int64_t>(0, -left);
           j < std::min(window.size, from.width - left); ++j) {
        loop.pixels[loop.count] = in + from.offset(n, top + i, left + j);
        loop.numbers[loop.count++] = static_cast<std::uint8_t>(i * window.size + j);
      }
    const std::int64_t at = to.offset(n, row, column);
    loop.channels = to.channels;
    loop.scratch = scratch;
    loop.y = out + at;
    loop.place = place ? place + at : nullptr;
    run(loop);
  });
}

template <typename T>
void input_gradient(const at::Tensor& dy, const at::Tensor& places, const PoolWindow& window,
                    at::Tensor& dx) {
  const PixelGrid from(dy), to(dx);
  const T* const in = dy.const_data_ptr<T>();
  const std::uint8_t* const place = places.const_data_ptr<std::uint8_t>();
  T* const out = dx.mutable_data_ptr<T>();
  const auto [size, stride, padding] = window;
  // The first and last window that cover a pixel of a side.
  const auto first = [&](std::int64_t pixel) {
    return std::max<std::int64_t>(0, pixel + padding - size + stride) / stride;
  };
  const auto last = [&](std::int64_t pixel, std::int64_t windows) {
    return std::min((pixel + padding) / stride, windows - 1);
  };
  for_each_pixel(to, [&](std::int64_t n, std::int64_t y, std::int64_t x, float* scratch) {
    GradientOfPixel<T> loop;
    loop.count = 0;
    for (std::int64_t row = first(y); row <= last(y, from.height); ++row)
      for (std::int64_t column = first(x); column <= last(x, from.width); ++column) {
        const std::int64_t at = from.offset(n, row, column);
        loop.dy[loop.count] = in + at;
        loop.place[loop.count] = place + at;
        loop.numbers[loop.count++] = static_cast<std::uint8_t>((y + padding - row * stride) * size +
                                                               x + padding - column * stride);
      }
    loop.channels = to.channels;
    loop.scratch = scratch;
    loop.dx = out + to.offset(n, y, x);
    run(loop);
  });
}

std::int64_t windows_of(std::int64_t pixels, const PoolWindow& window) {
  return (pixels + 2 * window.padding - window.size) / window.stride + 1;
}

/// Returns the maxima. `places`, where it is defined, receives their places as uint8.
at::Tensor pooled(const at::Tensor& x, const PoolWindow& window, at::Tensor& places) {
  return as_operator("scalemark::max_pool2d", {x}, [&] {
    at::Tensor y = at::empty(
        {x.size(0), x.size(1), windows_of(x.size(2), window), windows_of(x.size(3), window)},
        x.options(), kChannelsLast);
    if (places.defined())
      places = at::empty(y.sizes(), y.options().dtype(at::kByte), kChannelsLast);
    x.scalar_type() == at::kFloat ? pool<float>(x, window, y, places)
                                  : pool<c10::BFloat16>(x, window, y, places);
    return y;
  });
}

class MaxPool : public torch::autograd::Function<MaxPool> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t size,
                            std::int64_t stride, std::int64_t padding) {
    at::Tensor places = at::empty({0}, at::kByte);
    const at::Tensor y = pooled(x, {size, stride, padding}, places);
    context->save_for_backward({places});
    context->saved_data["window"] = std::vector<std::int64_t>{size, stride, padding};
    context->saved_data["shape"] = x.sizes().vec();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto window = context->saved_data["window"].toIntVector();
    const at::Tensor dy = gradients[0].contiguous(kChannelsLast);
    at::Tensor dx =
        at::empty(context->saved_data["shape"].toIntVector(), dy.options(), kChannelsLast);
    const at::Tensor places = context->get_saved_variables()[0];
    const PoolWindow of{window[0], window[1], window[2]};
    dy.scalar_type() == at::kFloat ? input_gradient<float>(dy, places, of, dx)
                                   : input_gradient<c10::BFloat16>(dy, places, of, dx);
    return {dx, {}, {}, {}};
  }
};

}  // namespace

bool suits_max_pool(const at::Tensor& x, const PoolWindow& window) {
  return suits_loops(x) && x.dim() == 4 && x.numel() > 0 && x.is_contiguous(kChannelsLast) &&
         window.size * window.size <= kMostPixels && 2 * window.padding <= window.size &&
         std::min(x.size(2), x.size(3)) + 2 * window.padding >= window.size;
}

at::Tensor max_pool_fused(const at::Tensor& x, const PoolWindow& window) {
  if (at::GradMode::is_enabled() && x.requires_grad())
    return MaxPool::apply(x, window.size, window.stride, window.padding);
  at::Tensor none;
  return pooled(x, window, none);
}

}  // namespace scalemark
