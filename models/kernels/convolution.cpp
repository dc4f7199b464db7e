// Trains a convolution: of the result and the two gradients each is computed by Winograd's filters,
// as a matrix product of pixels or of copies of what they are computed from, by the products of
// panels of this file, or by LibTorch's convolutions. A gradient of the weight by panels is a
// product of [out, pixels] and [pixels, columns]. Pixels pass in chunks: both sides are copied or
// transformed into panels that stay in a thread's caches, and each block of the product adds its
// chunks in their order. Results are the same for the same number of threads.
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// Adds a chunk's a^T b of two panels [depth, kPanel] to `block` [kPanel, kPanel]. The `first`
/// chunk is not added but written.
struct AddPanelProduct {
  const float *a, *b;
  std::int64_t depth;
  float* block;
  bool first;
};
void run(const AddPanelProduct& product);

namespace {

/// Computes `height` rows of the block from `row` on. The sums stay in registers.
template <typename Vector, int height>
SCALEMARK_INLINE void add_rows_of_block(const AddPanelProduct& product, std::int64_t row) {
  constexpr int kVectors = kPanel * sizeof(float) / sizeof(Vector);
  Vector sum[height][kVectors] = {};
  const float* a = product.a + row;
  const auto* b = reinterpret_cast<const Vector*>(product.b);
  for (std::int64_t k = 0; k < product.depth; ++k, a += kPanel, b += kVectors)
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sum[i][j] += a[i] * b[j];
  auto* to = reinterpret_cast<Vector*>(product.block + row * kPanel);
  if (product.first) {
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) to[i * kVectors + j] = sum[i][j];
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) to[i * kVectors + j] += sum[i][j];
  }
}

SCALEMARK_VECTOR_LOOP void add_any(const AddPanelProduct& product) {
  add_rows_of_block<EightFloats, 6>(product, 0);
  add_rows_of_block<EightFloats, 6>(product, 6);
  add_rows_of_block<EightFloats, 4>(product, 12);
}
#ifdef SCALEMARK_AVX512_LOOP
SCALEMARK_AVX512_LOOP void add_avx512(const AddPanelProduct& product) {
  add_rows_of_block<SixteenFloats, 16>(product, 0);
}
#endif

}  // namespace

void run(const AddPanelProduct& product) {
#ifdef SCALEMARK_AVX512_LOOP
  if (has_avx512()) return add_avx512(product);
#endif
  add_any(product);
}

namespace {

constexpr double kLeastGradientWork = 1 << 22;    ///< elements of x times rows
constexpr std::int64_t kLeastReuse = 96;          ///< multiply-adds of each value that is copied
constexpr std::int64_t kLeastStridedReuse = 256;  ///< where pixels are copied for a product
constexpr std::int64_t kShortRow = 8;     ///< pixels of a result, for which oneDNN's bf16 is slow
constexpr std::int64_t kStridedRow = 16;  ///< and its gradient of a weight of 1 x 1,
constexpr std::int64_t kTiledRow = 14;    ///< or of any weight, as a product by tiles
constexpr std::int64_t kFewestPixels = 256;  ///< for which a fixed weight is copied each time
constexpr std::int64_t kDeepest = 128, kFlattest = 32;  ///< of a chunk
constexpr std::int64_t kChunkBytes = 1 << 20;           ///< of all panels of a chunk
constexpr std::int64_t kBytesOfParts = 4 << 20;  ///< of the products of all parts of the depth

/// Returns the number of parts of the depth: as many as threads, fewer where their products would
/// take much memory. It divides the number of threads.
std::int64_t parts_of(std::int64_t depth, std::int64_t bytes, std::int64_t threads) {
  std::int64_t parts =
      std::clamp<std::int64_t>(std::min(kBytesOfParts / bytes, depth / kDeepest), 1, threads);
  while (threads % parts != 0) --parts;
  return parts;
}

}  // namespace

PanelProducts::PanelProducts(std::int64_t positions, std::int64_t rows, std::int64_t columns,
                             std::int64_t depth, const at::TensorOptions& options)
    : positions_(positions),
      columns_(columns),
      depth_(depth),
      row_panels_(divided_up(rows, kPanel)),
      column_panels_(divided_up(columns, kPanel)) {
  const std::int64_t threads = at::get_num_threads(), line = kPanel * sizeof(float);
  const std::int64_t size = positions * row_panels_ * column_panels_ * kPanel * kPanel;
  const std::int64_t parts = parts_of(depth, size * sizeof(float), threads);
  share_ = divided_up(column_panels_, threads / parts);
  const std::int64_t panels = positions * (row_panels_ + share_);
  chunk_ = std::clamp(kChunkBytes / (panels * line), kFlattest, kDeepest);
  // Columns that nothing fills are computed with too, and slowly if they are denormal.
  panels_ = at::zeros({parts, divided_up(column_panels_, share_), panels, (chunk_ + 1) * kPanel},
                      options);
  products_ = at::empty({parts, positions, column_panels_, row_panels_, kPanel, kPanel}, options);
}

void PanelProducts::add(const std::function<void(std::int64_t, const Place&)>& fill) {
  const std::int64_t parts = panels_.size(0), shares = panels_.size(1), panel = panels_.size(3);
  at::parallel_for(0, parts * shares, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      const std::int64_t part = worker / shares, first = worker % shares * share_;
      const std::int64_t last = std::min(first + share_, column_panels_);
      float* const rows = panels_.mutable_data_ptr<float>() + worker * panels_.stride(1);
      float* const columns = rows + positions_ * row_panels_ * panel;
      float* const products = products_.mutable_data_ptr<float>() + part * products_.stride(0);
      const Place start{rows,           columns,
                        first * kPanel, std::min(last * kPanel, columns_),
                        panel,          row_panels_ * panel,
                        share_ * panel};
      const std::int64_t until = depth_ * (part + 1) / parts;
      bool write = true;
      for (std::int64_t k = depth_ * part / parts; k < until; k += chunk_, write = false) {
        const std::int64_t deep = std::min(chunk_, until - k);
        Place place = start;
        for (std::int64_t i = 0; i < deep; ++i, place.rows += kPanel, place.columns += kPanel)
          fill(k + i, place);
        for (std::int64_t p = 0; p < positions_; ++p)
          for (std::int64_t q = first; q < last; ++q)
            for (std::int64_t r = 0; r < row_panels_; ++r)
              run(AddPanelProduct{
                  rows + (p * row_panels_ + r) * panel, columns + (p * share_ + q - first) * panel,
                  deep, products + ((p * column_panels_ + q) * row_panels_ + r) * kPanel * kPanel,
                  write});
      }
    }
  });
  for (std::int64_t part = 1; part < parts; ++part) products_[0].add_(products_[part]);
}

const float* PanelProducts::row(std::int64_t row, std::int64_t panel) const {
  return products_.const_data_ptr<float>() +
         ((panel * row_panels_ + row / kPanel) * kPanel + row % kPanel) * kPanel;
}

namespace {

/// Returns whether each pixel of a result is computed from one pixel alone.
bool are_pixels(const at::Tensor& weight, at::IntArrayRef padding) {
  return keeps_pixels(weight, {1, 1}, padding, 1);
}

/// Copies what each pixel of a result is computed from: of x [N, in, H, W] in channels_last memory
/// all taps [height, width, in], with zeros for those outside.
class Taps {
 public:
  Taps(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight, at::IntArrayRef stride,
       at::IntArrayRef padding)
      : in_(x.size(1)),
        height_(x.size(2)),
        width_(x.size(3)),
        down_(dy.size(2)),
        across_(dy.size(3)),
        taps_down_(weight.size(2)),
        taps_across_(weight.size(3)),
        stride_(stride),
        padding_(padding) {}

  std::int64_t count() const { return taps_down_ * taps_across_ * in_; }
  /// Returns where the first tap of a pixel lies, which must be inside.
  template <typename T>
  const T* first(const T* x, std::int64_t pixel) const {
    return at(x, pixel, top(pixel), left(pixel));
  }
  template <typename T>
  void copy(const T* x, std::int64_t pixel, T* to) const {
    const std::int64_t top = this->top(pixel), left = this->left(pixel);
    const std::int64_t begin = std::max<std::int64_t>(-left, 0),
                       end = std::min(width_ - left, taps_across_);
    for (std::int64_t row = top; row < top + taps_down_; ++row, to += taps_across_ * in_) {
      std::fill(to, to + taps_across_ * in_, T(0.f));
      if (row < 0 || row >= height_ || begin >= end) continue;
      const T* const from = at(x, pixel, row, left + begin);
      std::copy(from, from + (end - begin) * in_, to + begin * in_);
    }
  }

 private:
  std::int64_t top(std::int64_t pixel) const {
    return pixel / across_ % down_ * stride_[0] - padding_[0];
  }
  std::int64_t left(std::int64_t pixel) const { return pixel % across_ * stride_[1] - padding_[1]; }
  template <typename T>
  const T* at(const T* x, std::int64_t pixel, std::int64_t row, std::int64_t column) const {
    return x + ((pixel / (down_ * across_) * height_ + row) * width_ + column) * in_;
  }

  std::int64_t in_, height_, width_, down_, across_, taps_down_, taps_across_;
  at::IntArrayRef stride_, padding_;
};

/// Returns the gradient of the weight [out, in, height, width] from x [N, in, H, W] and dy [N, out,
/// H', W'], all in channels_last memory: row o and column (i, j, c) of the product are weight
/// [o, c, i, j].
at::Tensor direct_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                  const at::Tensor& weight, at::IntArrayRef stride,
                                  at::IntArrayRef padding) {
  const Taps taps(x, dy, weight, stride, padding);
  const bool alone = are_pixels(weight, padding);
  const std::int64_t out = weight.size(0), columns = taps.count();
  const float *const from = x.const_data_ptr<float>(), *const slope = dy.const_data_ptr<float>();
  PanelProducts products(1, out, columns, dy.numel() / out, x.options());
  const at::Tensor copies = at::empty({at::get_num_threads(), columns}, x.options());
  float* const of_threads = copies.mutable_data_ptr<float>();
  products.add([&](std::int64_t pixel, const PanelProducts::Place& place) {
    to_panels<kPanel>(slope + pixel * out, out, place.rows, place.panel);
    const std::int64_t count = place.end - place.begin;
    if (alone)
      return to_panels<kPanel>(taps.first(from, pixel) + place.begin, count, place.columns,
                               place.panel);
    float* const own = of_threads + at::get_thread_num() * columns;
    taps.copy(from, pixel, own);
    to_panels<kPanel>(own + place.begin, count, place.columns, place.panel);
  });
  at::Tensor gradient = at::empty(weight.sizes(), x.options(), kChannelsLast);
  float* const to = gradient.mutable_data_ptr<float>();
  at::parallel_for(0, out, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t c = 0; c < columns; c += kPanel) {
        const float* const values = products.row(o, c / kPanel);
        std::copy(values, values + std::min(kPanel, columns - c), to + o * columns + c);
      }
  });
  return gradient;
}

/// Returns [pixels, channels] of x [N, channels, H, W], whose memory it shares where that is in
/// channels_last order.
at::Tensor pixel_rows(const at::Tensor& x) {
  return x.permute({0, 2, 3, 1}).reshape({-1, x.size(1)});
}

/// Multiplies the pixels of x [N, channels, H, W] by b [channels, out] -> [N, out, H, W]. Each
/// thread computes the pixels that it reads in the operators around, whose lines are in its caches:
/// divided otherwise, the additions of gradients after it took twice as long.
at::Tensor pixel_product(const at::Tensor& x, const at::Tensor& b, const at::Tensor& bias) {
  const at::Tensor rows = pixel_rows(x);
  const at::Tensor product = is_fp32_on_cpu(x)
                                 ? product_in_pieces(rows, b, bias, {at::get_num_threads(), 1})
                                 : linear_product(rows, b.t(), bias);
  return product.view({x.size(0), x.size(2), x.size(3), b.size(1)}).permute({0, 3, 1, 2});
}

/// Returns all taps of all pixels of bf16, [pixels, height x width x in] of Taps.
at::Tensor tap_rows(const at::Tensor& x, const Taps& taps, std::int64_t pixels) {
  const at::Tensor rows = at::empty({pixels, taps.count()}, x.options());
  const c10::BFloat16* const from = x.const_data_ptr<c10::BFloat16>();
  c10::BFloat16* const to = rows.mutable_data_ptr<c10::BFloat16>();
  at::parallel_for(0, pixels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t pixel = begin; pixel < end; ++pixel)
      taps.copy(from, pixel, to + pixel * taps.count());
  });
  return rows;
}

/// Returns the pixels in a row of the result.
std::int64_t row_of_result(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                           at::IntArrayRef padding) {
  return (x.size(3) + 2 * padding[1] - weight.size(3)) / stride[1] + 1;
}

/// Returns the pixels of x [N, channels, H, W] that a convolution of 1 x 1 with this stride reads.
at::Tensor pixels_read(const at::Tensor& x, at::IntArrayRef stride) {
  return x.slice(2, 0, x.size(2), stride[0]).slice(3, 0, x.size(3), stride[1]);
}

bool has_strides(at::IntArrayRef stride) { return stride[0] != 1 || stride[1] != 1; }

/// Returns whether a product of the pixels uses each value of both sides so often.
bool reuses(const at::Tensor& weight, std::int64_t least = kLeastReuse) {
  const std::int64_t rows = weight.size(0), columns = weight.numel() / rows;
  return rows * columns >= least * (rows + columns);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Convolution : public torch::autograd::Function<Convolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                            at::IntArrayRef padding) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    if (suits_winograd(x, weight, stride, padding))
      return winograd_conv2d(x, winograd_filters(weight), bias.value_or(at::Tensor()));
    if (suits_pixel_products(x, weight, stride, padding))
      return pixel_conv2d(x, weight, bias, stride);
    return at::conv2d(x, weight, bias, stride, padding);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1];
    const bool bias = context->saved_data["bias"].toBool();
    const auto stride = context->saved_data["stride"].toIntVector();
    const auto padding = context->saved_data["padding"].toIntVector();
    const at::Tensor dy = gradients[0].contiguous(kChannelsLast);
    const bool by_winograd = suits_winograd(x, weight, stride, padding);
    const bool own_dx = by_winograd || suits_pixel_products(x, weight, stride, padding);
    const bool own_dweight = suits_weight_gradient(x, weight, stride, padding);
    const std::array<std::int64_t, 1> bias_shape{weight.size(0)};
    const std::array<std::int64_t, 2> one{1, 1}, zero{0, 0};
    const std::array<bool, 3> torchs{context->needs_input_grad(0) && !own_dx, !own_dweight,
                                     bias && !own_dweight};
    at::Tensor dx, dweight, dbias;
    if (std::ranges::any_of(torchs, std::identity()))
      std::tie(dx, dweight, dbias) = at::convolution_backward(
          dy, x, weight, at::OptionalIntArrayRef(bias_shape), stride, padding, one,
          /*transposed=*/false, zero, /*groups=*/1, torchs);
    if (context->needs_input_grad(0) && own_dx)
      dx = by_winograd ? winograd_input_gradient(dy, weight)
                       : pixel_input_gradient(x, dy, weight, stride);
    if (own_dweight) dweight = conv2d_weight_gradient(x, dy, weight, stride, padding);
    if (own_dweight && bias) dbias = dy.sum({0, 2, 3});
    return {dx, dweight, dbias, {}, {}};
  }
};

}  // namespace

bool suits_pixel_products(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                          at::IntArrayRef padding) {
#if defined(__x86_64__)
  static const bool faster = at::hasMKL() && __builtin_cpu_is("intel") && has_avx512();
  if (is_convolution(x, weight, at::kBFloat16))
    return has_avx512() && are_pixels(weight, padding) &&
           (row_of_result(x, weight, stride, padding) <= kShortRow ||
            (has_tiles() && has_strides(stride)));
  return faster && is_convolution(x, weight, at::kFloat) && are_pixels(weight, padding) &&
         reuses(weight, has_strides(stride) ? kLeastStridedReuse : kLeastReuse);
#else
  return false;
#endif
}

at::Tensor pixel_conv2d(const at::Tensor& x, const at::Tensor& weight,
                        const std::optional<at::Tensor>& bias, at::IntArrayRef stride) {
  return pixel_product(pixels_read(x, stride), weight.flatten(1).t(), bias.value_or(at::Tensor()));
}

bool suits_fixed_pixels(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                        at::IntArrayRef padding) {
  return has_tiles() && is_convolution(x, weight, at::kBFloat16) &&
         suits_pixel_products(x, weight, stride, padding) &&
         pixels_read(x, stride).numel() >= kFewestPixels * x.size(1);
}

at::Tensor fixed_pixel_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              at::IntArrayRef stride, bool relu, const at::Tensor& residual) {
  const at::Tensor read = pixels_read(x, stride);
  at::Tensor y = residual;
  if (!y.defined())
    y = at::empty({x.size(0), weight.size(0), read.size(2), read.size(3)}, x.options(),
                  kChannelsLast);
  at::Tensor rows = y.permute({0, 2, 3, 1}).view({-1, weight.size(0)});
  tile_product(rows, /*add=*/residual.defined(), pixel_rows(read), weight.flatten(1).t(), bias,
               relu);
  return y;
}

at::Tensor pixel_input_gradient(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                                at::IntArrayRef stride) {
  const at::Tensor of_read = pixel_product(dy, weight.flatten(1), {});
  if (!has_strides(stride)) return of_read;
  const at::Tensor gradient = at::empty(x.sizes(), x.options(), kChannelsLast).zero_();
  pixels_read(gradient, stride).copy_(of_read);
  return gradient;
}

at::Tensor pixel_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                 const at::Tensor& weight, at::IntArrayRef stride,
                                 at::IntArrayRef padding) {
  const at::Tensor rows = pixel_rows(dy);
  const at::Tensor columns = are_pixels(weight, padding)
                                 ? pixel_rows(pixels_read(x, stride))
                                 : tap_rows(x, Taps(x, dy, weight, stride, padding), rows.size(0));
  return product(rows.t(), columns)
      .view({weight.size(0), weight.size(2), weight.size(3), x.size(1)})
      .permute({0, 3, 1, 2});
}

bool suits_weight_gradient(const at::Tensor& x, const at::Tensor& weight, at::IntArrayRef stride,
                           at::IntArrayRef padding) {
  const auto work = static_cast<double>(x.numel()) * static_cast<double>(weight.size(0));
  if (work < kLeastGradientWork) return false;
  if (is_convolution(x, weight, at::kBFloat16)) {
    if (!has_avx512()) return false;
    const std::int64_t row = row_of_result(x, weight, stride, padding);
    return are_pixels(weight, padding) ? has_tiles() || !has_strides(stride) || row <= kStridedRow
                                       : row <= (has_tiles() ? kTiledRow : kShortRow);
  }
  return is_convolution(x, weight, at::kFloat) &&
         ((!has_avx512() && reuses(weight)) || suits_pixel_products(x, weight, stride, padding) ||
          suits_winograd(x, weight, stride, padding));
}

at::Tensor conv2d_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                  const at::Tensor& weight, at::IntArrayRef stride,
                                  at::IntArrayRef padding) {
  if (!is_fp32_on_cpu(x) || suits_pixel_products(x, weight, stride, padding))
    return pixel_weight_gradient(x, dy, weight, stride, padding);
  return as_operator("scalemark::conv2d_weight_gradient", {dy, weight}, [&] {
    return suits_winograd(x, weight, stride, padding)
               ? winograd_weight_gradient(x, dy)
               : direct_weight_gradient(x, dy, weight, stride, padding);
  });
}

at::Tensor conv2d_trained(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          at::IntArrayRef stride, at::IntArrayRef padding) {
  return Convolution::apply(x.contiguous(kChannelsLast), weight,
                            bias.defined() ? std::optional(bias) : std::nullopt, stride, padding);
}

}  // namespace scalemark
