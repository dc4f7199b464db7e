// Divides matrix products into pieces, each computed on one thread or by all of them in turn, and
// computes gradients of weights, whose pieces LibTorch's library is slow at too.
#include <ATen/Parallel.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kColumns = 512;  ///< of a piece: its share of b is still in cache
constexpr std::int64_t kFewestColumns = 256;
constexpr std::int64_t kFewestRows = 64;
constexpr double kLeastMultiplyAdds = 1 << 24;  ///< some 0.2 ms: below, starting threads shows

constexpr std::int64_t kVocabulary = 16384;  ///< classes from which bf16 products are laid out anew

/// Returns rows and columns [row, row + rows) x [column, column + columns) of a matrix. It bypasses
/// the dispatcher, since the threads of a loop have neither its modes nor its observers.
at::Tensor block(const at::Tensor& matrix, std::int64_t row, std::int64_t rows, std::int64_t column,
                 std::int64_t columns) {
  return at::cpu::as_strided(
      matrix, {rows, columns}, matrix.strides(),
      matrix.storage_offset() + row * matrix.stride(0) + column * matrix.stride(1));
}

void add_to_rows(at::Tensor& block, const float* bias) {
  float* row = block.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < block.size(0); ++i, row += block.stride(0))
    for (std::int64_t j = 0; j < block.size(1); ++j) row[j] += bias[j];
}

bool is_bf16_of_a_vocabulary(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && weight.size(0) >= kVocabulary;
}

/// Returns the pieces of a product that is to be cut, else one.
ProductPieces pieces_of(const at::Tensor& a, const at::Tensor& b) {
  if (!cuts_products() || !is_fp32_on_cpu(a) || !is_fp32_on_cpu(b)) return {};
  return product_pieces(a.size(0), a.size(1), b.size(1), at::get_num_threads());
}

}  // namespace

bool cuts_products() {
#if defined(__x86_64__)
  static const bool measured =
      at::hasMKL() && (__builtin_cpu_is("amd") || __builtin_cpu_supports("avx512f"));
  return measured;
#else
  return false;
#endif
}

ProductPieces product_pieces(std::int64_t m, std::int64_t k, std::int64_t n, int threads) {
  if (static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) < kLeastMultiplyAdds)
    return {};
  ProductPieces pieces{1, divided_up(n, kColumns)};
  const std::int64_t even = divided_up(pieces.columns, threads) * threads;
  if (n / even >= kFewestColumns) pieces.columns = even;
  if (pieces.columns < threads) pieces.rows = divided_up(threads, pieces.columns);
  return m / pieces.rows < kFewestRows ? ProductPieces{} : pieces;
}

ProductPieces square_parts(std::int64_t m, std::int64_t n, std::int64_t threads) {
  std::int64_t down = 1;
  for (std::int64_t of_rows = 2; of_rows <= threads; ++of_rows)
    if (threads % of_rows == 0 &&
        m / of_rows + n * of_rows / threads < m / down + n * down / threads)
      down = of_rows;
  return {down, threads / down};
}

at::Tensor product_in_pieces(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                             const ProductPieces& pieces) {
  const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float* offsets = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const std::int64_t rows = divided_up(m, pieces.rows);
  const std::int64_t columns = part_length(n, pieces.columns, 16);  // lines of cache
  const std::int64_t across = divided_up(n, columns);
  const at::Tensor product = at::empty({m, n}, a.options());
  return as_operator("scalemark::mm", {a, b}, [&] {
    at::parallel_for(0, pieces.rows * across, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece) {
        const std::int64_t i = piece / across * rows, j = piece % across * columns;
        const std::int64_t height = std::min(rows, m - i), width = std::min(columns, n - j);
        if (height <= 0) continue;
        at::Tensor part = block(product, i, height, j, width);
        at::cpu::mm_out(part, block(a, i, height, 0, k), block(b, 0, k, j, width));
        if (offsets) add_to_rows(part, offsets + j);
      }
    });
    return product;
  });
}

at::Tensor rows_apart(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options) {
  const auto line = 64 / static_cast<std::int64_t>(options.dtype().itemsize());
  const std::int64_t stride = (divided_up(columns, line) | 1) * line;
  return at::empty_strided({rows, columns}, {stride, 1}, options);
}

at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor rows = x.reshape({-1, weight.size(1)}), columns = weight.t();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const bool apart = !bias.defined() && is_bf16_of_a_vocabulary(x, weight);
  const bool tiled = suits_tiles(rows, columns);
  if (apart || tiled) {
    at::Tensor product = apart ? rows_apart(rows.size(0), weight.size(0), x.options())
                               : at::empty({rows.size(0), weight.size(0)}, x.options());
    if (tiled)
      tile_product(product, /*add=*/false, rows, columns, bias);
    else
      at::mm_out(product, rows, columns);
    return product.view(shape);
  }
  const ProductPieces pieces = pieces_of(rows, columns);
  if (pieces == ProductPieces{})
    return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  return product_in_pieces(rows, columns, bias, pieces).view(shape);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (!suits_tiles(a, b)) return at::mm(a, b);
  at::Tensor product = at::empty({a.size(0), b.size(1)}, a.options());
  tile_product(product, /*add=*/false, a, b, {});
  return product;
}

at::Tensor product_input_gradient(const at::Tensor& dy, const at::Tensor& weight) {
  const ProductPieces pieces = pieces_of(dy, weight);
  if (pieces == ProductPieces{}) return product(dy, weight);
  return product_in_pieces(dy, weight, {}, pieces);
}

namespace {

constexpr std::int64_t kTileRows = 6, kTileColumns = 16;  ///< whose sums fill the registers
constexpr std::int64_t kDepth = 384;          ///< so deep, 16 columns stay in the first cache,
constexpr std::int64_t kBlockRows = 96;       ///< these rows in the second,
constexpr std::int64_t kBlockColumns = 1024;  ///< and these columns in the third
constexpr std::int64_t kCopied = 192;         ///< of a row at a time: whole panels of either width

/// Copies x [depth, count], whose rows are `stride` apart, to panels [depth, width] of its columns.
/// Zeros fill the last one, since what is computed with them could be slow.
template <std::int64_t width>
void pack(const float* x, std::int64_t stride, std::int64_t count, std::int64_t depth,
          float* panels) {
  if (const std::int64_t part = count % width; part != 0)
    std::fill_n(panels + (count - part) * depth, width * depth, 0.f);
  for (std::int64_t first = 0; first < count; first += kCopied)
    for (std::int64_t k = 0; k < depth; ++k)
      to_panels<width>(x + k * stride + first, std::min(kCopied, count - first),
                       panels + first * depth + k * width, width * depth);
}

/// Adds a^T b to y [rows, columns <= 16], or writes it there: of panels of 6 rows a, and of one of
/// columns b.
struct AddTiles {
  const float *a, *b;
  std::int64_t depth;
  float* y;
  std::int64_t stride, rows, columns;
  bool add;
};

SCALEMARK_VECTOR_LOOP void add_tiles(const AddTiles& tiles) {
  for (std::int64_t row = 0; row < tiles.rows; row += kTileRows) {
    EightFloats sum[kTileRows][2] = {};
    const float* a = tiles.a + row * tiles.depth;
    const EightFloats* b = reinterpret_cast<const EightFloats*>(tiles.b);
    for (std::int64_t k = 0; k < tiles.depth; ++k, a += kTileRows, b += 2)
#pragma GCC unroll 6
      for (int i = 0; i < kTileRows; ++i) {
        sum[i][0] += a[i] * b[0];
        sum[i][1] += a[i] * b[1];
      }
    float part[kTileRows * kTileColumns];
    const std::int64_t rows = std::min(kTileRows, tiles.rows - row);
    const bool whole = rows == kTileRows && tiles.columns == kTileColumns;
    float* const y = tiles.y + row * tiles.stride;
    float* const to = whole ? y : part;
    const std::int64_t stride = whole ? tiles.stride : kTileColumns;
    const bool add = whole && tiles.add;
#pragma GCC unroll 6
    for (int i = 0; i < kTileRows; ++i) {
      EightFloats* const place = reinterpret_cast<EightFloats*>(to + i * stride);
      place[0] = add ? place[0] + sum[i][0] : sum[i][0];
      place[1] = add ? place[1] + sum[i][1] : sum[i][1];
    }
    if (whole) continue;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < tiles.columns; ++j)
        y[i * tiles.stride + j] =
            (tiles.add ? y[i * tiles.stride + j] : 0.f) + part[i * kTileColumns + j];
  }
}

/// Rows [row, row_end) x columns [column, column_end) of a gradient.
struct Part {
  std::int64_t row, row_end, column, column_end;
};

/// Computes a part on this thread. `panels` has room for a block of either side.
void write_part(const Part& part, at::Tensor& gradient, bool add, const at::Tensor& dy,
                const at::Tensor& x, float* panels) {
  const float *const slopes = dy.const_data_ptr<float>(), *const inputs = x.const_data_ptr<float>();
  float* const to = gradient.mutable_data_ptr<float>();
  float* const columns = panels + kBlockRows * kDepth;
  for (std::int64_t j = part.column; j < part.column_end; j += kBlockColumns) {
    const std::int64_t width = std::min(kBlockColumns, part.column_end - j);
    for (std::int64_t k = 0; k < x.size(0); k += kDepth) {
      const std::int64_t depth = std::min(kDepth, x.size(0) - k);
      pack<kTileColumns>(inputs + k * x.stride(0) + j, x.stride(0), width, depth, columns);
      for (std::int64_t i = part.row; i < part.row_end; i += kBlockRows) {
        const std::int64_t rows = std::min(kBlockRows, part.row_end - i);
        pack<kTileRows>(slopes + k * dy.stride(0) + i, dy.stride(0), rows, depth, panels);
        for (std::int64_t q = 0; q < width; q += kTileColumns)
          add_tiles({panels, columns + q * depth, depth, to + i * gradient.stride(0) + j + q,
                     gradient.stride(0), rows, std::min(kTileColumns, width - q), add || k > 0});
      }
    }
  }
}

constexpr std::int64_t kFewestTokens = 16, kLeastWeight = 1 << 20;  ///< MKL's are as fast below

bool has_slow_products() {
#if defined(__x86_64__)
  static const bool slow =
      at::hasMKL() && __builtin_cpu_is("amd") && __builtin_cpu_supports("fma") && !has_avx512();
  return slow;
#else
  return false;
#endif
}

}  // namespace

bool suits_weight_product(const at::Tensor& gradient, const at::Tensor& dy, const at::Tensor& x) {
  const auto fits = [](const at::Tensor& t) { return is_fp32_on_cpu(t) && t.stride(1) == 1; };
  return has_slow_products() && fits(gradient) && fits(dy) && fits(x) &&
         x.size(0) >= kFewestTokens && gradient.numel() >= kLeastWeight;
}

void add_weight_product(at::Tensor& gradient, bool add, const at::Tensor& dy, const at::Tensor& x) {
  const std::int64_t out = dy.size(1), in = x.size(1), threads = at::get_num_threads();
  const auto [down, across] = square_parts(out, in, threads);
  const std::int64_t height = part_length(out, down, kTileRows);
  const std::int64_t width = part_length(in, across, kTileColumns);
  const std::int64_t block = (kBlockRows + std::min(kBlockColumns, width)) * kDepth;
  const at::Tensor panels = at::empty({threads, block}, x.options());
  float* const all = panels.mutable_data_ptr<float>();
  as_operator("scalemark::mm", {dy.t(), x}, [&] {
    at::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = i / across * height, column = i % across * width;
        write_part({row, std::min(row + height, out), column, std::min(column + width, in)},
                   gradient, add, dy, x, all + i * block);
      }
    });
    return gradient;
  });
}

}  // namespace scalemark
