// Computes Winograd convolutions with the matrices of Lavin and Gray 2016, section 4.1: three
// transforms, each of one tile over its channels, which are contiguous in channels_last memory, and
// the matrix product between them. Tiles pass all steps in chunks that stay in the caches. The
// division into chunks depends on the number of tiles alone, so results do not depend on the number
// of threads.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

inline constexpr std::int64_t kTileOut = 2;  ///< pixels of a tile's side
inline constexpr std::int64_t kTileIn = 4;   ///< that they are computed from
inline constexpr std::int64_t kTilePositions = kTileIn * kTileIn;

/// Says where a square of pixels or taps is in memory: element (i, j) of channel c is at[i rows + j
/// columns + c].
template <typename T>
struct Square {
  T* at;
  std::int64_t rows, columns;
};

/// A square of some channels and that which is computed from it.
struct TileTransform {
  Square<const float> from;
  Square<float> to;
  std::int64_t channels;
};
/// Computes `to` (4 x 4) = B^T x B of `from` (4 x 4).
void transform_input(const TileTransform& tile);
/// Computes `to` (4 x 4) = G w G^T of `from` (3 x 3).
void transform_filter(const TileTransform& tile);
/// Computes `to` (4 x 4) = A dy A^T of `from` (2 x 2).
void transform_slope(const TileTransform& tile);
/// Computes `to` (3 x 3) = G^T m G of `from` (4 x 4).
void transform_filter_slope(const TileTransform& tile);

/// Says what is added to the products, and whether ReLU follows.
struct Ending {
  const float* bias;  ///< [channels]
  bool add, relu;
};
/// Computes `to` (2 x 2) = A^T m A of `from` (4 x 4) + bias, + the values of `to` with `add`, then
/// max(., 0) with `relu`.
void transform_output(const TileTransform& tile, const Ending& ending);

/// Computes y [rows, count * kPanel] = x [rows, depth] times `count` panels [depth, kPanel]. Each
/// element is summed in the order of `depth`, whatever the number of rows.
struct MultiplyPanels {
  const float* x;
  std::int64_t rows, depth;
  const float* panels;
  std::int64_t count;
  float* y;
  std::int64_t apart;  ///< rows of y
};
void run(const MultiplyPanels& product);

SCALEMARK_VECTOR_LOOP void transform_input(const TileTransform& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileIn][kTileIn];
#pragma GCC unroll 4
    for (int j = 0; j < kTileIn; ++j) {
      const float* const d = x + j * columns + c;
      const float d0 = d[0], d1 = d[rows], d2 = d[2 * rows], d3 = d[3 * rows];
      v[0][j] = d0 - d2;
      v[1][j] = d1 + d2;
      v[2][j] = d2 - d1;
      v[3][j] = d1 - d3;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTileIn; ++i) {
      float* const t = y + i * down + c;
      t[0] = v[i][0] - v[i][2];
      t[across] = v[i][1] + v[i][2];
      t[2 * across] = v[i][2] - v[i][1];
      t[3 * across] = v[i][1] - v[i][3];
    }
  }
}

SCALEMARK_VECTOR_LOOP void transform_filter(const TileTransform& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileIn][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      const float* const w = x + j * columns + c;
      const float w0 = w[0], w1 = w[rows], w2 = w[2 * rows];
      v[0][j] = w0;
      v[1][j] = .5f * (w0 + w2 + w1);
      v[2][j] = .5f * (w0 + w2 - w1);
      v[3][j] = w2;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTileIn; ++i) {
      float* const t = y + i * down + c;
      t[0] = v[i][0];
      t[across] = .5f * (v[i][0] + v[i][2] + v[i][1]);
      t[2 * across] = .5f * (v[i][0] + v[i][2] - v[i][1]);
      t[3 * across] = v[i][2];
    }
  }
}

SCALEMARK_VECTOR_LOOP void transform_slope(const TileTransform& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileIn][kTileOut];
#pragma GCC unroll 2
    for (int j = 0; j < kTileOut; ++j) {
      const float* const d = x + j * columns + c;
      const float d0 = d[0], d1 = d[rows];
      v[0][j] = d0;
      v[1][j] = d0 + d1;
      v[2][j] = d0 - d1;
      v[3][j] = -d1;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTileIn; ++i) {
      float* const t = y + i * down + c;
      t[0] = v[i][0];
      t[across] = v[i][0] + v[i][1];
      t[2 * across] = v[i][0] - v[i][1];
      t[3 * across] = -v[i][1];
    }
  }
}

SCALEMARK_VECTOR_LOOP void transform_filter_slope(const TileTransform& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[3][kTileIn];
#pragma GCC unroll 4
    for (int j = 0; j < kTileIn; ++j) {
      const float* const m = x + j * columns + c;
      const float sum = .5f * (m[rows] + m[2 * rows]);
      v[0][j] = m[0] + sum;
      v[1][j] = .5f * (m[rows] - m[2 * rows]);
      v[2][j] = m[3 * rows] + sum;
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      float* const t = y + i * down + c;
      const float sum = .5f * (v[i][1] + v[i][2]);
      t[0] = v[i][0] + sum;
      t[across] = .5f * (v[i][1] - v[i][2]);
      t[2 * across] = v[i][3] + sum;
    }
  }
}

namespace {

template <bool add, bool relu>
SCALEMARK_INLINE void transform_output_as(const TileTransform& tile, const float* bias) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileOut][kTileIn];
#pragma GCC unroll 4
    for (int j = 0; j < kTileIn; ++j) {
      const float* const m = x + j * columns + c;
      const float m1 = m[rows], m2 = m[2 * rows];
      v[0][j] = m[0] + m1 + m2;
      v[1][j] = m1 - m2 - m[3 * rows];
    }
#pragma GCC unroll 2
    for (int i = 0; i < kTileOut; ++i) {
      float* const t = y + i * down + c;
      float left = v[i][0] + v[i][1] + v[i][2] + bias[c];
      float right = v[i][1] - v[i][2] - v[i][3] + bias[c];
      if constexpr (add) {
        left += t[0];
        right += t[across];
      }
      if constexpr (relu) {
        left = left < 0 ? 0.f : left;  // NaN stays
        right = right < 0 ? 0.f : right;
      }
      t[0] = left;
      t[across] = right;
    }
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void transform_output(const TileTransform& tile, const Ending& ending) {
  const auto [bias, add, relu] = ending;
  if (add)
    relu ? transform_output_as<true, true>(tile, bias)
         : transform_output_as<true, false>(tile, bias);
  else
    relu ? transform_output_as<false, true>(tile, bias)
         : transform_output_as<false, false>(tile, bias);
}

namespace {

constexpr std::int64_t kLine = 16;  ///< of the cache, in floats

/// Multiplies `height` rows by `panels` panels. The sums stay in registers.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_rows(const MultiplyPanels& product, std::int64_t row) {
  constexpr int kOfPanel = static_cast<int>(kPanel * sizeof(float) / sizeof(Vector));
  constexpr int kVectors = kOfPanel * panels;
  Vector sum[height][kVectors] = {};
  const float* const x = product.x + row * product.depth;
  const auto* panel = reinterpret_cast<const Vector*>(product.panels);
  const std::int64_t apart = product.depth * kOfPanel;
  for (std::int64_t first = 0; first < product.depth; first += kLine) {
    for (int i = 0; i < height; ++i)  // streams too short for the processor to foresee
      __builtin_prefetch(x + (height + i) * product.depth + first);
    const std::int64_t end = std::min(first + kLine, product.depth);
    for (std::int64_t k = first; k < end; ++k, panel += kOfPanel)
#pragma GCC unroll 12
      for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j)
          sum[i][j] += x[i * product.depth + k] * panel[j / kOfPanel * apart + j % kOfPanel];
  }
#pragma GCC unroll 12
  for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j)
      reinterpret_cast<Vector*>(product.y + (row + i) * product.apart)[j] = sum[i][j];
}

/// Multiplies all rows. The last rows are computed together with some before them, which are then
/// computed twice.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_all_rows(const MultiplyPanels& product) {
  if (product.rows < height) {
    for (std::int64_t row = 0; row < product.rows; ++row)
      multiply_rows<Vector, 1, panels>(product, row);
    return;
  }
  for (std::int64_t row = 0; row < product.rows; row += height)
    multiply_rows<Vector, height, panels>(product, std::min(row, product.rows - height));
}

/// Multiplies by `panels` panels at once, then by those that are left.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_panels(MultiplyPanels product) {
  const auto advance = [&](std::int64_t by) {
    product.panels += by * product.depth * kPanel;
    product.y += by * kPanel;
    product.count -= by;
  };
  for (; product.count >= panels; advance(panels))
    multiply_all_rows<Vector, height, panels>(product);
  for (; product.count > 0; advance(1)) multiply_all_rows<Vector, height, 1>(product);
}

SCALEMARK_VECTOR_LOOP void multiply_panels_any(const MultiplyPanels& product) {
  multiply_panels<EightFloats, 6, 1>(product);
}
#ifdef SCALEMARK_AVX512_LOOP
SCALEMARK_AVX512_LOOP void multiply_panels_avx512(const MultiplyPanels& product) {
  multiply_panels<SixteenFloats, 12, 2>(product);
}
#endif

}  // namespace

#if defined(__x86_64__)
bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}
#else
bool has_avx512() { return false; }
#endif

void run(const MultiplyPanels& product) {
#ifdef SCALEMARK_AVX512_LOOP
  if (has_avx512()) return multiply_panels_avx512(product);
#endif
  multiply_panels_any(product);
}

namespace {

constexpr std::int64_t kChunkTiles = 128;
constexpr std::int64_t kFewestTiles = 64;     ///< of all images: the filters are read once for them
constexpr std::int64_t kFewestChannels = 32;  ///< in and out: fewer do not pay for the transforms

/// The images of a batch in channels_last memory.
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
  /// Returns the number of tiles of one chunk. There is an even number of chunks, equal but for the
  /// last.
  std::int64_t chunk() const {
    const std::int64_t chunks = divided_up(divided_up(count(), kChunkTiles), 2) * 2;
    return divided_up(count(), chunks);
  }
  Tile operator[](std::int64_t i) const {
    return {i / (rows * columns), i / columns % rows * kTileOut, i % columns * kTileOut};
  }
};

/// Calls copy(pixel, place in the square) for the pixels of a square that are within the images.
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

/// Returns a square of the images, or of `edge` [side x side x channels], which receives a copy of
/// one that reaches out of them.
Square<const float> square_of(const Images<const float>& images, const Tile& tile,
                              std::int64_t side, float* edge) {
  const std::int64_t channels = images.channels;
  if (holds_whole(images, tile, side))
    return {images.pixel(tile.n, tile.y, tile.x), images.width * channels, channels};
  std::fill(edge, edge + side * side * channels, 0.f);
  for_each_held(images, tile, side, [&](const float* pixel, std::int64_t place) {
    std::copy(pixel, pixel + channels, edge + place);
  });
  return {edge, side * channels, channels};
}

/// Returns the tile of the input that a tile of the result is computed from.
Tile with_padding(const Tile& tile) { return {tile.n, tile.y - 1, tile.x - 1}; }

void scatter(const Square<float>& m, const Images<float>& y, const Tile& tile, const Ending& ending,
             float* edge) {
  const std::int64_t channels = y.channels;
  const auto finish = [&](Square<float> to) {
    transform_output({{m.at, m.rows, m.columns}, to, channels}, ending);
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

/// The workspace of a chunk: [16 positions, tiles, channels].
struct Positions {
  float* at;
  std::int64_t channels, apart;

  /// Returns the distance of two positions. With a power of two they would contend for the same
  /// lines of the cache.
  static std::int64_t apart_of(std::int64_t chunk, std::int64_t channels) {
    return chunk * channels + 16;
  }
  Square<float> tile(std::int64_t t) const { return {at + t * channels, kTileIn * apart, apart}; }
};

/// Computes m = v filters at each position, for `tiles` tiles.
void multiply(const Positions& v, const WinogradFilters& filters, std::int64_t tiles,
              const Positions& m) {
  const std::int64_t panels = filters.values.size(1), in = filters.values.size(2);
  const float* const first = filters.values.const_data_ptr<float>();
  for (std::int64_t p = 0; p < kTilePositions; ++p)
    run(MultiplyPanels{v.at + p * v.apart, tiles, in, first + p * panels * in * kPanel, panels,
                       m.at + p * m.apart, m.channels});
}

/// Computes y, the convolution of x, both in channels_last memory.
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
      for (std::int64_t t = 0; t < tiles; ++t)
        transform_input(
            {square_of(from, with_padding(tiling[first + t]), kTileIn, edge), v.tile(t), in});
      multiply(v, filters, tiles, m);
      for (std::int64_t t = 0; t < tiles; ++t)
        scatter(m.tile(t), to, tiling[first + t], ending, edge);
    }
  });
}

at::Tensor like_with_channels(const at::Tensor& x, std::int64_t channels) {
  return at::empty({x.size(0), channels, x.size(2), x.size(3)}, x.options(), kChannelsLast);
}

}  // namespace

bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                    at::IntArrayRef padding) {
  return is_convolution(x, weight, at::kFloat) && keeps_pixels(weight, stride, padding, 3) &&
         std::min(weight.size(0), weight.size(1)) >= kFewestChannels &&
         Tiling(x).count() >= kFewestTiles;
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
      transform_filter({from, {transformed.data(), kTileIn * columns, columns}, columns});
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

at::Tensor winograd_input_gradient(const at::Tensor& dy, const at::Tensor& weight) {
  const WinogradFilters filters = winograd_filters(weight, /*mirrored=*/true);
  return as_operator("scalemark::conv2d_input_gradient", {dy, filters.values}, [&] {
    at::Tensor dx = like_with_channels(dy, filters.channels);
    convolve(dy, filters, {}, /*relu=*/false, /*add=*/false, dx);
    return dx;
  });
}

at::Tensor winograd_weight_gradient(const at::Tensor& x, const at::Tensor& dy) {
  const std::int64_t in = x.size(1), out = dy.size(1);
  const Images<const float> images{x.const_data_ptr<float>(), x.size(2), x.size(3), in};
  const Images<const float> slopes{dy.const_data_ptr<float>(), x.size(2), x.size(3), out};
  const Tiling tiling(x);
  PanelProducts products(kTilePositions, out, in, tiling.count(), x.options());
  const std::int64_t widest = kTilePositions * std::max(in, out);
  const at::Tensor edges = at::empty({at::get_num_threads(), widest}, x.options());
  float* const all_edges = edges.mutable_data_ptr<float>();
  products.add([&](std::int64_t t, const PanelProducts::Place& place) {
    float* const edge = all_edges + at::get_thread_num() * widest;
    const Square<const float> slope = square_of(slopes, tiling[t], kTileOut, edge);
    for (std::int64_t c = 0; c < out; c += kPanel)
      transform_slope(
          {{slope.at + c, slope.rows, slope.columns},
           {place.rows + c / kPanel * place.panel, kTileIn * place.rows_apart, place.rows_apart},
           std::min(kPanel, out - c)});
    const Square<const float> image = square_of(images, with_padding(tiling[t]), kTileIn, edge);
    float* to = place.columns;
    for (std::int64_t c = place.begin; c < place.end; c += kPanel, to += place.panel)
      transform_input({{image.at + c, image.rows, image.columns},
                       {to, kTileIn * place.columns_apart, place.columns_apart},
                       std::min(kPanel, place.end - c)});
  });
  at::Tensor gradient = at::empty({out, in, 3, 3}, x.options(), kChannelsLast);
  float* const to = gradient.mutable_data_ptr<float>();
  at::parallel_for(0, out, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t c = 0; c < in; c += kPanel)
        transform_filter_slope(
            {{products.row(o, c / kPanel), kTileIn * products.position(), products.position()},
             {to + o * 9 * in + c, 3 * in, in},
             std::min(kPanel, in - c)});
  });
  return gradient;
}

}  // namespace scalemark
