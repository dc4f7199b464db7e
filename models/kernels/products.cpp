// Divides matrix products into pieces, each computed on one thread or by all of them in turn.
#include <ATen/Parallel.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kColumns = 512;  ///< of a piece: its share of b is still in cache
constexpr std::int64_t kFewestColumns = 256;
constexpr std::int64_t kFewestRows = 64;
constexpr double kLeastMultiplyAdds = 1 << 24;  ///< some 0.2 ms: below, starting threads shows

constexpr std::int64_t kVocabulary = 16384;  ///< classes from which bf16 products are laid out anew
constexpr std::int64_t kPanelDepth = 4096;   ///< of the sums of one panel: 6 MB of a weight's rows
constexpr std::int64_t kLeastRows = 512;     ///< that read a panel of the weight often enough

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

/// Returns a [m, k] b [k, n] -> [m, n] as the sum, in fp32, of products of `kPanelDepth` of k.
at::Tensor product_in_panels(const at::Tensor& a, const at::Tensor& b) {
  const std::int64_t k = a.size(1);
  const at::Tensor panels =
      at::empty({divided_up(k, kPanelDepth), a.size(0), b.size(1)}, a.options());
  for (std::int64_t begin = 0; begin < k; begin += kPanelDepth) {
    const std::int64_t depth = std::min(kPanelDepth, k - begin);
    at::Tensor panel = panels.select(0, begin / kPanelDepth);
    at::mm_out(panel, a.narrow(1, begin, depth), b.narrow(0, begin, depth));
  }
  return panels.sum(0);
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

at::Tensor product_in_pieces(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                             const ProductPieces& pieces) {
  const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float* offsets = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const std::int64_t rows = divided_up(m, pieces.rows);
  const std::int64_t columns =
      divided_up(divided_up(n, pieces.columns), 16) * 16;  // lines of cache
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
  if (!bias.defined() && is_bf16_of_a_vocabulary(x, weight)) {
    at::Tensor product = rows_apart(rows.size(0), weight.size(0), x.options());
    return at::mm_out(product, rows, columns).view(shape);
  }
  const ProductPieces pieces = pieces_of(rows, columns);
  if (pieces == ProductPieces{})
    return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  return product_in_pieces(rows, columns, bias, pieces).view(shape);
}

at::Tensor product_input_gradient(const at::Tensor& dy, const at::Tensor& weight) {
  if (is_bf16_of_a_vocabulary(dy, weight) && dy.size(0) >= kLeastRows)
    return product_in_panels(dy, weight);
  const ProductPieces pieces = pieces_of(dy, weight);
  if (pieces == ProductPieces{}) return at::mm(dy, weight);
  return product_in_pieces(dy, weight, {}, pieces);
}

}  // namespace scalemark
