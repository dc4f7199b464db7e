// Computes max pooling and its gradient. Pixels are divided among threads, each with all of its
// channels.
#include "models/kernels/max_pool.hpp"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/max_pool_loops.hpp"

namespace scalemark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

/// Pixels of a batch in channels_last memory.
struct PixelGrid {
  std::int64_t images, height, width, channels;

  explicit PixelGrid(const at::Tensor& x)
      : images(x.size(0)), height(x.size(2)), width(x.size(3)), channels(x.size(1)) {}
  std::int64_t count() const { return images * height * width; }
  /// Of a channel's first element.
  std::int64_t offset(std::int64_t n, std::int64_t y, std::int64_t x) const {
    return ((n * height + y) * width + x) * channels;
  }
};

/// Calls work(image, y, x, scratch of 2 * channels floats) for each, in their order.
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

/// `places`: of the maxima, uint8, where it is defined.
at::Tensor pooled(const at::Tensor& x, const PoolWindow& window, at::Tensor& places) {
  return as_operator("scalemark::max_pool2d", {x}, [&] {
    at::Tensor y = at::empty(
        {x.size(0), x.size(1), windows_of(x.size(2), window), windows_of(x.size(3), window)},
        x.options(), kLayout);
    if (places.defined()) places = at::empty(y.sizes(), y.options().dtype(at::kByte), kLayout);
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
    const at::Tensor dy = gradients[0].contiguous(kLayout);
    at::Tensor dx = at::empty(context->saved_data["shape"].toIntVector(), dy.options(), kLayout);
    const at::Tensor places = context->get_saved_variables()[0];
    const PoolWindow of{window[0], window[1], window[2]};
    dy.scalar_type() == at::kFloat ? input_gradient<float>(dy, places, of, dx)
                                   : input_gradient<c10::BFloat16>(dy, places, of, dx);
    return {dx, {}, {}, {}};
  }
};

}  // namespace

bool suits_max_pool(const at::Tensor& x, const PoolWindow& window) {
  return suits_loops(x) && x.dim() == 4 && x.numel() > 0 && x.is_contiguous(kLayout) &&
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
