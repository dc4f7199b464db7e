// Computes matrix products in pieces, each on one thread, where torch's library of matrix products
// divides a whole product badly among its threads.
#pragma once

#include <torch/torch.h>

namespace scalemark {

/// Into how many pieces a product [m, k] x [k, n] is cut; one piece: it is not.
struct ProductPieces {
  std::int64_t rows = 1, columns = 1;
  friend bool operator==(const ProductPieces&, const ProductPieces&) = default;
};

/// Of about 512 columns, evenly over the threads, and of rows too where there are more threads than
/// such pieces. Small products stay whole.
ProductPieces product_pieces(std::int64_t m, std::int64_t k, std::int64_t n, int threads);

/// Whether this processor's products are to be cut: fp32 on AMD's and those with AVX-512, where
/// torch computes them with MKL. On 2 threads of an EPYC (Zen 3) pieces took 0.61 to 0.92 of the
/// time of whole products [256, 1024] x [1024, 1024 to 32768] with a transposed right side, 0.88 to
/// 1.00 with a plain one; of a step of Transformer-big on an Intel Xeon 0.97 to 0.99. Others were
/// not measured.
bool cuts_products();

/// a [m, k] b [k, n] + bias [n] (undefined: none) -> [m, n], of fp32 in CPU memory without
/// gradients.
at::Tensor product_in_pieces(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                             const ProductPieces& pieces);

/// x [..., in] weight^T [in, out] + bias [out] (undefined: none) -> [..., out], as at::linear()
/// without gradients; in pieces where that is faster.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
/// dy [rows, out] weight [out, in] -> [rows, in]: the gradient of x, likewise.
at::Tensor product_input_gradient(const at::Tensor& dy, const at::Tensor& weight);

}  // namespace scalemark
