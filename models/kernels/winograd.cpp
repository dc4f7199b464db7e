// Computes Winograd convolutions. Tiles pass all three steps in chunks that stay in the caches. The
// division into chunks depends on the number of tiles alone, so results do not depend on the number
// of threads.
#include "models/kernels/winograd.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/loops.hpp"
#include "models/kernels/winograd_loops.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kChunkTiles = 128;
constexpr std::int64_t kFewestTiles = 64;     ///< of all images: the filters are read once for them
constexpr std::int64_t kFewestChannels = 32;  ///< in and out: fewer do not pay for the transforms
constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// An image of a batch in channels_last memory.
template <typename T>
struct Images {
  T* at;
  std::int64_t height, width, channels;

  T* pixel(std::int64_t n, std::int64_t y, std::int64_t x) const {
    return at + ((n * height + y) * width + x) * channels;
  }
  bool holds(std::int64_t y, std::int64_t x) const {
    return y >= 0 && y < height && x >= 0 && x < width;
  }
};

struct Tile {
  std::int64_t n, y, x;  ///< image; its first pixel
};

/// The tiles of a batch, in the order of its memory.
struct Tiling {
  std::int64_t images, rows, columns;

  explicit Tiling(const at::Tensor& x)
      : images(x.size(0)),
        rows(divided_up(x.size(2), kTileOut)),
        columns(divided_up(x.size(3), kTileOut)) {}
  std::int64_t count() const { return images * rows * columns; }
  /// Of one chunk: an even number of chunks, equal but for the last.
  std::int64_t chunk() const {
    const std::int64_t chunks = divided_up(divided_up(count(), kChunkTiles), 2) * 2;
    return divided_up(count(), chunks);
  }
  Tile operator[](std::int64_t i) const {
    return {i / (rows * columns), i / columns % rows * kTileOut, i % columns * kTileOut};
  }
};

/// The pixels of a square that lie within the images: `copy`(pixel, place in the square).
template <typename T, typename Copy>
void for_each_held(const Images<T>& images, const Tile& tile, std::int64_t side, const Copy& copy) {
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j)
      if (images.holds(tile.y + i, tile.x + j))
        copy(images.pixel(tile.n, tile.y + i, tile.x + j), (i * side + j) * images.channels);
}

template <typename T>
bool holds_whole(const Images<T>& images, const Tile& tile, std::int64_t side) {
  return images.holds(tile.y, tile.x) && images.holds(tile.y + side - 1, tile.x + side - 1);
}

/// `edge` [16 x channels]: a copy of what reaches out of the image.
void gather(const Images<const float>& x, Tile tile, Square<float> to, float* edge) {
  tile.y -= 1;  // the padding
  tile.x -= 1;
  const std::int64_t channels = x.channels;
  Square<const float> from{nullptr, x.width * channels, channels};
  if (holds_whole(x, tile, kTileIn)) {
    from.at = x.pixel(tile.n, tile.y, tile.x);
  } else {
    std::fill(edge, edge + kTilePositions * channels, 0.f);
    for_each_held(x, tile, kTileIn, [&](const float* pixel, std::int64_t place) {
      std::copy(pixel, pixel + channels, edge + place);
    });
    from = {edge, kTileIn * channels, channels};
  }
  run(TransformInput{from, to, channels});
}

/// What a result becomes beside the products.
struct Ending {
  const float* bias;
  bool add, relu;
};

void scatter(const Square<float>& m, const Images<float>& y, const Tile& tile, const Ending& ending,
             float* edge) {
  const std::int64_t channels = y.channels;
  const auto finish = [&](Square<float> to) {
    run(TransformOutput{
        {m.at, m.rows, m.columns}, to, channels, ending.bias, ending.add, ending.relu});
  };
  if (holds_whole(y, tile, kTileOut))
    return finish({y.pixel(tile.n, tile.y, tile.x), y.width * channels, channels});
  if (ending.add)
    for_each_held(y, tile, kTileOut, [&](const float* pixel, std::int64_t place) {
      std::copy(pixel, pixel + channels, edge + place);
    });
  finish({edge, kTileOut * channels, channels});
  for_each_held(y, tile, kTileOut, [&](float* pixel, std::int64_t place) {
    std::copy(edge + place, edge + place + channels, pixel);
  });
}

/// Workspace of a chunk: [16 positions, tiles, channels].
struct Positions {
  float* at;
  std::int64_t channels, apart;

  /// Positions a power of two apart would contend for the same lines of the cache.
  static std::int64_t apart_of(std::int64_t chunk, std::int64_t channels) {
    return chunk * channels + 16;
  }
  Square<float> tile(std::int64_t t) const { return {at + t * channels, kTileIn * apart, apart}; }
};

/// m = v filters, at each position; of `tiles`.
void multiply(const Positions& v, const WinogradFilters& filters, std::int64_t tiles,
              const Positions& m) {
  const std::int64_t panels = filters.values.size(1), in = filters.values.size(2);
  const float* const first = filters.values.const_data_ptr<float>();
  for (std::int64_t p = 0; p < kTilePositions; ++p)
    run(MultiplyPanels{v.at + p * v.apart, tiles, in, first + p * panels * in * kPanel, panels,
                       m.at + p * m.apart, m.channels});
}

/// y = the convolution of x, both channels_last.
void convolve(const at::Tensor& x, const WinogradFilters& filters, const at::Tensor& bias,
              bool relu, bool add, at::Tensor& y) {
  const std::int64_t in = x.size(1), out = filters.channels;
  const Images<const float> from{x.const_data_ptr<float>(), x.size(2), x.size(3), in};
  const Images<float> to{y.mutable_data_ptr<float>(), x.size(2), x.size(3), out};
  const at::Tensor offsets = bias.defined() ? bias.contiguous() : at::zeros({out}, x.options());
  const Ending ending{offsets.const_data_ptr<float>(), add, relu};
  const Tiling tiling(x);
  const std::int64_t chunk = tiling.chunk(), padded = filters.values.size(1) * kPanel;
  const std::int64_t v_apart = Positions::apart_of(chunk, in),
                     m_apart = Positions::apart_of(chunk, padded);
  const std::int64_t each = kTilePositions * (v_apart + m_apart + std::max(in, out));
  const at::Tensor workspace = at::empty({at::get_num_threads(), each}, x.options());
  at::parallel_for(0, divided_up(tiling.count(), chunk), 1, [&](auto begin, auto end) {
    float* const own = workspace.mutable_data_ptr<float>() + at::get_thread_num() * each;
    const Positions v{own, in, v_apart}, m{own + kTilePositions * v_apart, padded, m_apart};
    float* const edge = m.at + kTilePositions * m_apart;
    for (std::int64_t first = begin * chunk; first < std::min(end * chunk, tiling.count());
         first += chunk) {
      const std::int64_t tiles = std::min(chunk, tiling.count() - first);
      for (std::int64_t t = 0; t < tiles; ++t) gather(from, tiling[first + t], v.tile(t), edge);
      multiply(v, filters, tiles, m);
      for (std::int64_t t = 0; t < tiles; ++t)
        scatter(m.tile(t), to, tiling[first + t], ending, edge);
    }
  });
}

at::Tensor like_with_channels(const at::Tensor& x, std::int64_t channels) {
  return at::empty({x.size(0), channels, x.size(2), x.size(3)}, x.options(), kChannelsLast);
}

/// dy [N, out, H, W], mirrored filters -> [N, in, H, W].
at::Tensor winograd_input_gradient(const at::Tensor& dy, const WinogradFilters& filters) {
  return as_operator("scalemark::conv2d_input_gradient", {dy, filters.values}, [&] {
    at::Tensor dx = like_with_channels(dy, filters.channels);
    convolve(dy, filters, {}, /*relu=*/false, /*add=*/false, dx);
    return dx;
  });
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Convolution : public torch::autograd::Function<Convolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    return winograd_conv2d(x, winograd_filters(weight), bias.value_or(at::Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1];
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const at::Tensor dy = gradients[0].contiguous(kChannelsLast);
    const std::array<std::int64_t, 1> bias_shape{weight.size(0)};
    const std::array<std::int64_t, 2> one{1, 1}, zero{0, 0};
    const auto [none, dweight, dbias] =
        at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(bias_shape), one, one, one,
                                 /*transposed=*/false, zero, /*groups=*/1, {false, true, has_bias});
    at::Tensor dx;
    if (context->needs_input_grad(0))
      dx = winograd_input_gradient(dy, winograd_filters(weight, /*mirrored=*/true));
    return {dx, dweight, dbias};
  }
};

}  // namespace

bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                    at::IntArrayRef padding) {
  const auto fits = [](const at::Tensor& t) {
    return t.is_cpu() && t.dim() == 4 && t.scalar_type() == at::kFloat;
  };
  const auto all = [](at::IntArrayRef values, std::int64_t value) {
    return std::ranges::all_of(values, [&](std::int64_t v) { return v == value; });
  };
  return fits(x) && fits(weight) && all(weight.sizes().slice(2), 3) && all(stride, 1) &&
         all(padding, 1) && weight.size(1) == x.size(1) &&
         std::min(weight.size(0), weight.size(1)) >= kFewestChannels &&
         Tiling(x).count() >= kFewestTiles && x.suggest_memory_format() == kChannelsLast;
}

WinogradFilters winograd_filters(const at::Tensor& weight, bool mirrored) {
  const at::Tensor packed = weight.contiguous(kChannelsLast);
  const std::int64_t rows = weight.size(0), columns = weight.size(1);
  const std::int64_t out = mirrored ? columns : rows, in = mirrored ? rows : columns;
  const std::int64_t panels = divided_up(out, kPanel);
  WinogradFilters filters{at::empty({kTilePositions, panels, in, kPanel}, weight.options()), out};
  if (out % kPanel != 0) filters.values.zero_();  // columns that no filter fills
  const float* const taps = packed.const_data_ptr<float>();
  float* const to = filters.values.mutable_data_ptr<float>();
  at::parallel_for(0, divided_up(rows, kPanel), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> transformed(kTilePositions * columns);
    for (std::int64_t row = begin * kPanel; row < std::min(end * kPanel, rows); ++row) {
      const float* const first = taps + row * 9 * columns;
      const Square<const float> from =
          mirrored ? Square<const float>{first + 8 * columns, -3 * columns, -columns}
                   : Square<const float>{first, 3 * columns, columns};
      run(TransformFilter{from, Square<float>{transformed.data(), kTileIn * columns, columns},
                          columns});
      for (std::int64_t p = 0; p < kTilePositions; ++p)
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t k = mirrored ? column : row, c = mirrored ? row : column;
          to[((p * panels + k / kPanel) * in + c) * kPanel + k % kPanel] =
              transformed[p * columns + column];
        }
    }
  });
  return filters;
}

at::Tensor winograd_conv2d(const at::Tensor& x, const WinogradFilters& filters,
                           const at::Tensor& bias, bool relu, const at::Tensor& residual) {
  return as_operator("scalemark::conv2d", {x, filters.values}, [&] {
    at::Tensor y = residual.defined() ? residual.contiguous(kChannelsLast)
                                      : like_with_channels(x, filters.channels);
    convolve(x.contiguous(kChannelsLast), filters, bias, relu, residual.defined(), y);
    return y;
  });
}

at::Tensor winograd_conv2d_trained(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias) {
  return Convolution::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

}  // namespace scalemark
