// Declares scalemark's own kernels, which models/operator_set.hpp selects in place of LibTorch's
// operators where they suit. Only this folder includes this header.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/operator_set.hpp"
#include "models/parameter_gate.hpp"

namespace scalemark {

// Batch normalisation of training, with the addition of the residual and ReLU, takes two passes in
// each direction: one that reduces, one that writes. LibTorch takes three to five, operator by
// operator. The backward pass needs the input and, with a residual, the output.

/// Returns true for activations that batch_norm_fused() takes: fp32 or bf16 on the CPU, [N,
/// channels, H, W] in channels_last memory, with at least two values of a channel.
bool can_fuse_batch_norm(const at::Tensor& x);

/// Returns relu(gamma (x - mean) / sqrt(variance + epsilon) + beta + residual) with the batch's
/// mean and variance (Ioffe and Szegedy 2015, algorithm 1), in the shape and dtype of x. Sums are
/// kept in float64, differences in fp32. `residual` is like x; where it is undefined, none is
/// added. Without `relu` there is no ReLU and there must be no residual. Running statistics move by
/// `momentum` towards the batch's, as in LibTorch, with the unbiased variance. The result is the
/// same for the same number of threads.
at::Tensor batch_norm_fused(const at::Tensor& x, const BatchNormTensors& layer, double momentum,
                            double epsilon, bool relu, const at::Tensor& residual = {});

// Max pooling does without the int64 indices that LibTorch keeps.

/// Returns true for fp32 or bf16 [N, C, H, W] in channels_last memory on the CPU, with a window of
/// at most 15 pixels a side, which may reach out of the image by less than its half.
bool suits_max_pool(const at::Tensor& x, const PoolWindow& window);

/// Computes at::max_pool2d() with its gradient. The maximum of a window with NaN is NaN.
at::Tensor max_pool_fused(const at::Tensor& x, const PoolWindow& window);

// Convolutions of 3 x 3 are computed by Winograd's minimal filtering F(2 x 2, 3 x 3) (Lavin and
// Gray 2016): four pixels take 16 multiplications a channel instead of 36, as matrix products over
// channels.

/// Returns true where a convolution of x [N, in, H, W] with weight [out, in, 3, 3], stride 1 and
/// padding 1 is computed so: in fp32 in CPU memory, where there are enough channels and tiles for
/// it to be faster.
bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                    at::IntArrayRef padding);

/// A transformed weight.
struct WinogradFilters {
  at::Tensor values;          ///< [16, panels of outputs, in, outputs of a panel]
  std::int64_t channels = 0;  ///< of the result
};

/// Transforms the weight [out, in, 3, 3]. With `mirrored` the filters are those of the convolution
/// that takes a gradient of the result back to x.
WinogradFilters winograd_filters(const at::Tensor& weight, bool mirrored = false);

/// Returns the convolution with `filters` + bias [out] (undefined: none), then max(., 0) with
/// `relu`: [N, in, H, W] -> [N, out, H, W], channels_last, without gradients. `residual`
/// (undefined: none) is like the result; it is added before the maximum and overwritten.
at::Tensor winograd_conv2d(const at::Tensor& x, const WinogradFilters& filters,
                           const at::Tensor& bias, bool relu = false,
                           const at::Tensor& residual = {});

/// Returns the gradient of x [N, in, H, W] from dy [N, out, H, W] in channels_last memory.
at::Tensor winograd_input_gradient(const at::Tensor& dy, const at::Tensor& weight);

/// Returns the gradient of the weight [out, in, 3, 3] from x and dy, both in channels_last memory:
/// of nine taps and four pixels 16 multiplications instead of 36 too, F(3 x 3, 2 x 2).
at::Tensor winograd_weight_gradient(const at::Tensor& x, const at::Tensor& dy);

/// Returns whether this processor can run the loops that are built for AVX-512.
bool has_avx512();

/// The number of rows, and of columns, of a matrix product that are computed at a time.
inline constexpr std::int64_t kPanel = 16;

/// Products a^T b of a [depth, rows] and b [depth, columns], one at each of some positions. Each
/// thread has a part of the depth or of the columns, of which chunks pass in panels that stay in
/// its caches. Results are the same for the same number of threads.
class PanelProducts {
 public:
  PanelProducts(std::int64_t positions, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                const at::TensorOptions& options);

  /// Where an element of the depth is written, in fp32: all its rows, and its columns from `begin`
  /// to `end`, in both the first 16 at the place, the next ones `panel` further, and so on.
  struct Place {
    float *rows, *columns;
    std::int64_t begin, end, panel;
    std::int64_t rows_apart, columns_apart;  ///< of the positions
  };
  /// Computes the products, with fill(k, place) for each k of the depth, once for each part of the
  /// columns, by several threads.
  void add(const std::function<void(std::int64_t, const Place&)>& fill);

  /// Returns 16 columns, those of a panel, of a row of the first position's product.
  const float* row(std::int64_t row, std::int64_t panel) const;
  /// Returns the floats from position to position.
  std::int64_t position() const { return products_.stride(1); }

 private:
  std::int64_t positions_, columns_, depth_, row_panels_, column_panels_;
  std::int64_t share_;   ///< panels of columns of a thread
  std::int64_t chunk_;   ///< of the depth
  at::Tensor panels_;    ///< [parts of the depth, of the columns, panels of a chunk, their floats]
  at::Tensor products_;  ///< [parts of the depth, positions, panels of columns, of rows, 16, 16]
};

/// Returns true where a convolution of 1 x 1 without padding is trained by matrix products of its
/// pixels, since LibTorch's library of products is faster there than that of convolutions: fp32 in
/// CPU memory, x in channels_last memory, one group, an Intel processor with AVX-512, and many
/// channels. On two threads of an Intel Xeon gradients of the weight of ResNet-50 took 0.58 to 1.03
/// of the time, on one 0.69 to 1.01. With strides the pixels that are read are copied first, which
/// needs more channels. In bf16 it is so with any processor with AVX-512, where rows of the result
/// have at most 8 pixels: oneDNN has both, and its products took 0.53 to 0.90 of the time.
bool suits_pixel_products(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                          at::IntArrayRef padding);

/// Returns the convolution of x with weight [out, in, 1, 1] + bias, all in channels_last memory.
at::Tensor pixel_conv2d(const at::Tensor& x, const at::Tensor& weight,
                        const std::optional<at::Tensor>& bias, at::IntArrayRef stride);

/// Returns true where fixed_pixel_conv2d() is to compute such a convolution without gradients:
/// bf16, by tiles, of at least 256 pixels.
bool suits_fixed_pixels(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                        at::IntArrayRef padding);

/// Returns what FixedConvolution does.
at::Tensor fixed_pixel_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              at::IntArrayRef stride, bool relu, const at::Tensor& residual);

/// Returns its gradient of x from dy, that of its result.
at::Tensor pixel_input_gradient(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                                at::IntArrayRef stride);

/// Returns the gradient of the weight [out, in, h, w] as a product of the pixels of dy and of x, in
/// bf16 of any convolution as one with copies of all that each pixel of dy is computed from.
at::Tensor pixel_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                 const at::Tensor& weight, at::IntArrayRef stride,
                                 at::IntArrayRef padding);

/// Returns true where conv2d_weight_gradient() is to compute the gradient of the weight [out, in,
/// h, w], by products of panels, by Winograd's filters or where suits_pixel_products(): of fp32 in
/// CPU memory, x in channels_last memory, one group, and enough work for each value that is copied
/// to a panel. Of the convolutions of ResNet-50 at batch 16, on 2 threads of an EPYC (Zen 3),
/// panels take 0.42 to 0.88 of LibTorch's time, Winograd's 0.32 to 0.46; those with fewer channels,
/// which are left to LibTorch, 0.82 to 1.13. With AVX-512 panels are not used: on an Intel Xeon
/// they took 0.69 to 1.42, Winograd's on 2 threads 0.72 to 0.89, on one 0.64 to 0.90. Also true in
/// bf16 with AVX-512, of 1 x 1 without padding and strides or with at most 16 pixels in a row of
/// the result, and of others with at most 8: products of pixels took 0.22 to 1.03 of oneDNN's time
/// with AMX (1.2 of one convolution on one thread), 0.74 to 1.09 without.
bool suits_weight_gradient(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                           at::IntArrayRef padding);

/// Returns the gradient of the weight from x [N, in, H, W] and dy, both in channels_last memory.
at::Tensor conv2d_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                  const at::Tensor& weight, at::IntArrayRef stride,
                                  at::IntArrayRef padding);

/// Returns the convolution of x [N, in, H, W] with weight [out, in, h, w] + bias (undefined: none),
/// with gradients, where suits_winograd() or suits_weight_gradient().
at::Tensor conv2d_trained(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          at::IntArrayRef stride, at::IntArrayRef padding);

// A linear layer writes the gradient of its weight directly into its place: where the gate takes
// gradients, the backward GEMM writes the flat buffer itself, and autograd never sees a tensor of
// the weight's size.

/// Maps x [..., in] with leaf [out, in] fp32 and bias [out], in the dtype of x or undefined, to
/// [..., out] in the dtype of x, computed with the gate's compute weight. It is the product of
/// activation(x); only x is kept for the backward pass, where one of scalemark's kernels can
/// compute activation(x) again.
at::Tensor linear_in_place(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                           const LayerGate& gate, Activation activation = Activation::none);

/// Copies `from` to `to`, which has the same shape. From bf16 to fp32 on the CPU, where both are
/// contiguous and large, the stores bypass the caches, because nobody reads a gradient before its
/// whole bucket is complete, and a line that is written whole need not be read. Anything else is
/// at::Tensor::copy_().
void widen(const at::Tensor& from, at::Tensor& to);

// Matrix products are computed in pieces, each on one thread, where LibTorch's library of matrix
// products divides a whole product badly among its threads.

/// The number of pieces into which a product [m, k] x [k, n] is cut. A single piece is not cut.
struct ProductPieces {
  std::int64_t rows = 1, columns = 1;
  friend bool operator==(const ProductPieces&, const ProductPieces&) = default;
};

/// Returns pieces of about 512 columns, evenly divided among the threads. Rows are cut too where
/// there are more threads than such pieces. Small products stay whole.
ProductPieces product_pieces(std::int64_t m, std::int64_t k, std::int64_t n, int threads);

/// Returns one piece for each thread, as nearly square as can be: of those the least is copied.
ProductPieces square_parts(std::int64_t m, std::int64_t n, std::int64_t threads);

/// Returns whether this processor's products are to be cut: fp32 on AMD's and those with AVX-512,
/// where LibTorch computes them with MKL. On 2 threads of an EPYC (Zen 3) pieces took 0.61 to 0.92
/// of the time of whole products [256, 1024] x [1024, 1024 to 32768] with a transposed right side,
/// and 0.88 to 1.00 with a plain one; of a step of Transformer-big on an Intel Xeon 0.97 to 0.99.
/// Others were not measured.
bool cuts_products();

/// Returns a [m, k] b [k, n] + bias [n] (undefined: none) -> [m, n], of fp32 in CPU memory, without
/// gradients.
at::Tensor product_in_pieces(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                             const ProductPieces& pieces);

/// Returns uninitialised [rows, columns] whose rows begin an odd number of cache lines apart. Rows
/// so long that a product reads one of their columns from a cache find room there in every set, and
/// rows of an odd vocabulary are aligned. On 2 threads of an Intel Xeon with AMX, bf16 products of
/// 1,024 rows with [50257, 768] took 50.7 ms into such rows and 65.8 ms into contiguous ones; the
/// gradient of x took 69 ms from such rows and 113 ms from contiguous ones, all by LibTorch.
/// Without AMX they took the same.
at::Tensor rows_apart(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options);

/// Returns whether this process may use the products of pairs of bf16 of AVX-512 (AVX512_BF16): the
/// processor has them, and ONEDNN_MAX_CPU_ISA does not say otherwise.
bool has_pair_products();

/// Returns whether this process may use the tile registers of AMX for bf16: the processor and the
/// system have them, and ONEDNN_MAX_CPU_ISA does not say otherwise. Then has_pair_products() is
/// true too.
bool has_tiles();

/// Returns true where tile_product() is to compute a [m, k] b [k, n]: bf16 in CPU memory with one
/// stride of 1, k of at least 32, 2^23 multiply-adds, and 64 rows and columns for each thread's
/// part of the result, since each thread copies both sides for itself. On 2 threads of an Intel
/// Xeon with AMX it takes 0.74 to 1.00 of the time of LibTorch's oneDNN (one of 18: 1.22), and 0.52
/// to 0.90 of that and widen() for gradients of weights: products of 64 to 1,024 rows of 512 to
/// 4,096 values. A bf16 that is denormal counts as 0, as in oneDNN's.
bool suits_tiles(const at::Tensor& a, const at::Tensor& b);

/// Writes a [m, k] b [k, n] + bias [n] (undefined: none) to `to` [m, n], bf16 or fp32, whose rows
/// are contiguous, or adds it there, and of that max(., 0) with `relu`. Sums are fp32, rounded
/// once.
void tile_product(at::Tensor& to, bool add, const at::Tensor& a, const at::Tensor& b,
                  const at::Tensor& bias, bool relu = false);

/// Returns a [m, k] b [k, n] -> [m, n] in their type, by tiles where that suits.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

/// Returns x [..., in] weight^T [in, out] + bias [out] (undefined: none) -> [..., out], as
/// at::linear() does without gradients, in pieces or by tiles where that is faster. bf16 logits of
/// a vocabulary are rows_apart().
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Returns the gradient of x, dy [rows, out] weight [out, in] -> [rows, in], in pieces or by tiles
/// where that is faster.
at::Tensor product_input_gradient(const at::Tensor& dy, const at::Tensor& weight);

/// Returns true where add_weight_product() is to compute a gradient [out, in] from dy [rows, out]
/// and x [rows, in]: fp32 in CPU memory, at least 16 rows and 2^20 elements of the gradient, on an
/// AMD processor without AVX-512. On 2 threads of an EPYC (Zen 3) it takes 0.56 to 1.06 of the time
/// of LibTorch's MKL, mostly 0.86, with 16 to 1,024 rows of 768 to 32,768 elements; 1.03 and 1.07
/// of smaller gradients, which stay LibTorch's. On an Intel Xeon with AVX-512 MKL's are products at
/// the rate of its fastest ones.
bool suits_weight_product(const at::Tensor& gradient, const at::Tensor& dy, const at::Tensor& x);

/// Adds dy^T x to the gradient, or writes it there. Each element is the sum, in order, of sums over
/// 384 rows, however many threads there are.
void add_weight_product(at::Tensor& gradient, bool add, const at::Tensor& dy, const at::Tensor& x);

/// Returns x [rows, columns] summed over the rows, in its type. Sums are of fp32, and the same for
/// every number of threads.
at::Tensor column_sums(const at::Tensor& x);

// GELU and SwiGLU serve a layer that keeps only x.

/// Returns true for either GELU and SwiGLU of fp32 or bf16 on the CPU, contiguous.
bool suits_activation(const at::Tensor& x, Activation activation);

/// Returns activation(x) in the dtype of x, without a gradient. Phi of the exact GELU is within
/// 8e-8 of its true value.
at::Tensor activation_fused(const at::Tensor& x, Activation activation);

/// Returns activation_fused(x) again in the backward pass. In the same pass over memory, `dy`, the
/// contiguous gradient of the result, becomes the gradient of x.
at::Tensor activation_and_gradient(const at::Tensor& x, at::Tensor& dy, Activation activation);

/// Returns true for fp32 or bf16 on the CPU with an fp32 weight.
bool suits_rms_norm(const at::Tensor& x, const at::Tensor& weight);

/// Computes OperatorSet::rms_norm() with its gradient. The result is the same for every number of
/// threads.
at::Tensor rms_norm_fused(const at::Tensor& x, const at::Tensor& weight, double epsilon);

/// Returns true for fp32 or bf16 on the CPU with fp32 parameters and a branch like x, or none.
bool suits_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       const at::Tensor& bias);

/// Computes OperatorSet::norm_of_sum() with its gradient, in one pass over memory in each
/// direction, and drops what dropout() drops. The result is the same for every number of threads.
at::Tensor norm_of_sum_fused(const at::Tensor& x, const at::Tensor& branch,
                             double dropout_probability, const at::Tensor& weight,
                             const at::Tensor& bias, double epsilon);

/// Returns true for fp32 or bf16 on the CPU.
bool suits_divided_heads(const at::Tensor& x, const Rotation& rotation);

/// Computes OperatorSet::divided_heads() with its gradient, in one pass over memory in each
/// direction. The heads are contiguous, as matrix products want them.
AttentionHeads divided_heads_fused(const at::Tensor& x, std::int64_t key_heads,
                                   const Rotation& rotation);

// Dropout on the CPU does without LibTorch's bernoulli_, which draws every mask element in turn on
// one thread and costs a Transformer 8 to 12 % of its step. Masks come from a counter: they depend
// only on the key of the call and the position of the element, so they are the same for every
// number of threads, and the backward pass draws them again instead of keeping them.

/// Returns x with every element zeroed with `probability` and the others scaled by 1 / (1 -
/// probability) (Srivastava et al. 2014), for any shape. fp32 and bf16 on the CPU are computed here
/// (with the probability in steps of 2^-16), everything else by LibTorch. The key is drawn from
/// LibTorch's default generator.
at::Tensor dropout(const at::Tensor& x, double probability);

/// Returns dropout(relu(x)), in one pass in each direction.
at::Tensor relu_dropout(const at::Tensor& x, double probability);

/// Draws the key of a call of dropout().
std::int64_t draw_dropout_key();

/// Says which elements a call of dropout() drops, and what it multiplies the others by.
struct DropMask {
  std::uint32_t key0, key1;
  std::uint32_t threshold;  ///< of 65536: below it an element is dropped
  float scale;
};

/// What a call of dropout() multiplies elements by, which is how its gradient is made too.
class DropFactors {
 public:
  DropFactors(std::int64_t key, double probability);
  /// Returns 0 or 1 / (1 - probability) for each of `count` elements from `first` on, in `buffer`.
  const float* of(std::int64_t first, std::int64_t count, std::vector<float>& buffer) const;

 private:
  DropMask mask_;
};

/// Returns true for fp32 and bf16 on the CPU with dropout, where LibTorch has no fused attention
/// and draws slowly. Without dropout, and on CUDA, LibTorch has fused kernels. A mask has no
/// gradient.
bool suits_attention(const AttentionInputs& inputs, double dropout_probability);

/// Returns softmax(q k^T / sqrt(depth)) v for each head, with dropout on the weights, in the shape
/// of the queries. Of its [batch, heads, length, length] values it keeps one set, the weights
/// before dropout, of which the backward pass makes the others again.
at::Tensor attention_with_dropout(const AttentionInputs& inputs, double dropout_probability);

/// Returns true where tiled_attention() is to compute attention: in bf16 in CPU memory, of at least
/// 32 targets and sources and a depth in whole 32, with at least a key head for each thread, where
/// has_pair_products(). By these it takes 0.49 to 0.97 of the time of the operators that it
/// replaces (an Intel Xeon without its AMX, 2 threads); no processor without AMX was measured.
bool suits_tiled_attention(const AttentionInputs& inputs);

/// Returns softmax(q k^T / sqrt(depth)) v for each head, with dropout on the weights, in the shape
/// of the queries, whose memory is [batch, targets, heads, depth]. Keeps one fp32 value a row for
/// the backward pass. Sums are of fp32, and weights bf16 in the products.
at::Tensor tiled_attention(const AttentionInputs& inputs, double dropout_probability);

/// Returns true in training in bf16 on the CPU, without dropout and mask, of a sequence with itself
/// that is short enough for its scores to be kept for a moment.
bool suits_attention_by_products(const AttentionInputs& inputs, double dropout_probability);

/// Computes attention by LibTorch's fused operator, and its gradient by products of whole heads,
/// which this processor's matrix units compute several times as fast as the blocks of LibTorch's
/// backward operator (17.6 against about 6 ms of 48 heads of 256 x 64 on 2 threads of an Intel Xeon
/// with AMX). Scores are rounded to bf16 on the way back, as probabilities are in both, so that the
/// error of gradients is up to 2.5 times that of LibTorch's.
at::Tensor attention_by_products(const AttentionInputs& inputs);

// Cross-entropy over a vocabulary keeps neither probabilities nor an fp32 copy of the logits.

/// Returns true for fp32 or bf16 [rows, classes] on the CPU.
bool suits_cross_entropy(const at::Tensor& logits);

/// Computes at::cross_entropy_loss() of the logits in fp32, summed over the rows: an fp32 scalar,
/// with its gradient. `labels` is int64 [rows]; rows of `ignored` count nothing. Throws
/// c10::IndexError at any other label that is no class.
at::Tensor cross_entropy_fused(const at::Tensor& logits, const at::Tensor& labels,
                               std::int64_t ignored, double label_smoothing);

/// Takes a step of Adam in one pass over memory, which is what the step costs. LibTorch's operator
/// needs another pass for the shadow weights. All tensors of `all` are contiguous in CPU memory, in
/// fp32, except for the shadow, which is bf16.
void adam_in_one_pass(const AdamTensors& all, const AdamRates& rates);

/// Returns the 2-norm of fp32 [n], contiguous in CPU memory, as an fp64 scalar. Squares are summed
/// in fp64 without the fp64 copy of the tensor that LibTorch makes. The sum does not depend on the
/// number of threads, so ranks that hold the same values get the same bits.
at::Tensor norm_of_blocks(const at::Tensor& flat);

/// Adds rows of embedding gradients to the dense gradient: gradient[indices[i]] += rows[i], i
/// ascending. gradient is fp32 [V, width], indices int64 [n], rows fp32 [n, width], all contiguous
/// in CPU memory. Each thread owns rows of the table, and a row is summed in the order of the
/// indices whatever the number of threads, so ranks that add the same rows get the same bits.
void add_rows_in_order(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows);

/// Returns f(x) for x [N, ...] on the CPU, where f treats each sample independently. Each of
/// LibTorch's threads, at most N, computes f of its share, which has N / threads samples or one
/// more, with operators that run on this thread alone. Threads that compute many layers without
/// waiting for each other are faster than threads that divide the work of each layer. `f` is called
/// by several threads at once. Inside such a thread, or of any other parallel loop, the function
/// just calls f(x).
at::Tensor in_shares(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace scalemark
