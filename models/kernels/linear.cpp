// Implements the linear layer as an autograd function that puts the weight gradient in its place,
// the gradient of a bias, and the conversion from bf16 to fp32 with stores that bypass the caches.
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <array>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// Some columns of rows that are `stride` apart.
template <typename T>
struct ColumnRows {
  const T* x;
  std::int64_t rows, columns, stride;
};
/// Adds the rows to sums.
void add_rows(const ColumnRows<float>& all, float* sums);
void add_rows(const ColumnRows<c10::BFloat16>& all, float* sums);

namespace {

template <typename T>
SCALEMARK_INLINE void rows_added(const ColumnRows<T>& all, float* sums) {
  const auto [x, rows, columns, stride] = all;
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {  // of four rows each sum is loaded and stored once
    const T *const a = x + i * stride, *const b = a + stride, *const c = b + stride,
                   *const d = c + stride;
    SCALEMARK_INDEPENDENT
    for (std::int64_t j = 0; j < columns; ++j)
      sums[j] += (load(a[j]) + load(b[j])) + (load(c[j]) + load(d[j]));
  }
  for (; i < rows; ++i) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t j = 0; j < columns; ++j) sums[j] += load(x[i * stride + j]);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void add_rows(const ColumnRows<float>& all, float* sums) {
  rows_added(all, sums);
}
SCALEMARK_VECTOR_LOOP void add_rows(const ColumnRows<c10::BFloat16>& all, float* sums) {
  rows_added(all, sums);
}

namespace {

template <typename T>
void sum_columns(const at::Tensor& x, at::Tensor& to) {
  constexpr std::int64_t kColumns = 512;  // whose sums stay in the first cache
  constexpr std::int64_t kRows = 256;     // are added up first, so that the error stays small
  const T* const from = x.const_data_ptr<T>();
  T* const y = to.mutable_data_ptr<T>();
  const std::int64_t rows = x.size(0), columns = x.size(1);
  at::parallel_for(0, divided_up(columns, kColumns), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * kColumns, count = std::min(kColumns, columns - first);
      std::array<float, kColumns> sums{};
      for (std::int64_t i = 0; i < rows; i += kRows) {
        std::array<float, kColumns> some{};
        add_rows({from + i * x.stride(0) + first, std::min(kRows, rows - i), count, x.stride(0)},
                 some.data());
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += some[j];
      }
      for (std::int64_t j = 0; j < count; ++j)
        store(y[first + j], sums[static_cast<std::size_t>(j)]);
    }
  });
}

}  // namespace

at::Tensor column_sums(const at::Tensor& x) {
  if (!suits_loops(x) || x.stride(1) != 1) return x.sum(0);
  return as_operator("scalemark::column_sums", {x}, [&] {
    at::Tensor y = at::empty({x.size(1)}, x.options());
    x.scalar_type() == at::kFloat ? sum_columns<float>(x, y) : sum_columns<c10::BFloat16>(x, y);
    return y;
  });
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The number of rows of the weight gradient that are computed at a time where the compute type is
/// narrower than fp32. A panel is still in cache when it is cast into its place.
constexpr std::int64_t kPanelRows = 4096;

/// What the backward pass needs in addition to the tensors that autograd saves.
struct Place : torch::CustomClassHolder {
  Place(at::Tensor parameter, LayerGate holder, Activation of_x)
      : leaf(std::move(parameter)), gate(std::move(holder)), activation(of_x) {}
  at::Tensor leaf;
  LayerGate gate;
  Activation activation;  ///< of x, whose product it is; the backward pass computes it again
};

void put(const Place& place, const ParameterGate::GradientWriter& write) {
  const at::NoGradGuard no_grad;
  place.gate->gate->put_gradient(place.leaf, write);
}

/// Computes gradient (+)= dy^T x with dy [n, out], x [n, in].
void write_product(at::Tensor& gradient, bool add, const at::Tensor& dy, const at::Tensor& x) {
  if (suits_weight_product(gradient, dy, x)) return add_weight_product(gradient, add, dy, x);
  if (gradient.scalar_type() == at::kFloat && suits_tiles(dy.t(), x))
    return tile_product(gradient, add, dy.t(), x, {});
  if (x.scalar_type() == gradient.scalar_type()) {
    if (add)
      gradient.addmm_(dy.t(), x);
    else
      at::mm_out(gradient, dy.t(), x);
    return;
  }
  for (std::int64_t row = 0; row < gradient.size(0); row += kPanelRows) {
    const std::int64_t rows = std::min(kPanelRows, gradient.size(0) - row);
    const at::Tensor panel = at::mm(dy.narrow(1, row, rows).t(), x);
    at::Tensor part = gradient.narrow(0, row, rows);
    if (add)
      part.add_(panel);
    else
      widen(panel, part);
  }
}

class Product : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias, const at::Tensor& weight,
                            const c10::intrusive_ptr<Place>& place) {
    context->save_for_backward({x, weight});
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    context->saved_data["has_bias"] = bias.has_value();
    const Activation activation = place->activation;
    return linear_product(activation == Activation::none ? x : activation_fused(x, activation),
                          weight, bias.value_or(at::Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const at::Tensor dy = gradients[0].reshape({-1, weight.size(0)});
    const auto place =
        c10::static_intrusive_pointer_cast<Place>(context->saved_data["place"].toCapsule());
    const bool activated = place->activation != Activation::none;
    at::Tensor dx, dbias, factor = x.reshape({-1, x.size(-1)});
    const auto input_gradient_of = [&] { return product_input_gradient(dy, weight); };
    if (activated) {  // in the pass that computes the gradient of x
      dx = input_gradient_of();
      factor = activation_and_gradient(factor, dx, place->activation);
    }
    put(*place, [&](at::Tensor& gradient, bool add) { write_product(gradient, add, dy, factor); });
    if (!activated && context->needs_input_grad(0)) dx = input_gradient_of();
    if (dx.defined()) dx = dx.view(x.sizes());
    if (context->saved_data["has_bias"].toBool()) dbias = column_sums(dy);
    return {dx, dbias, {}, {}};
  }
};

}  // namespace

at::Tensor linear_in_place(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                           const LayerGate& holder, Activation activation) {
  ParameterGate& gate = *holder->gate;
  const bool fused = suits_activation(x, activation);  // with the same bits in either mode
  const auto factor = [&] {
    return fused ? activation_fused(x, activation) : activated_anew(x, activation);
  };
  if (!at::GradMode::is_enabled()) return linear_product(factor(), gate.compute_weight(leaf), bias);
  if (!gate.takes_gradient(leaf))
    return at::linear(activated_anew(x, activation), gate.compute_weight(leaf), bias);
  // The weight is made part of the graph, since it may be the only input that needs a gradient.
  return Product::apply(
      fused ? x : factor(), bias.defined() ? std::optional(bias) : std::nullopt,
      gate.compute_weight(leaf),
      c10::make_intrusive<Place>(leaf, holder, fused ? activation : Activation::none));
}

namespace {

#if defined(__SSE2__)
constexpr std::int64_t kLoad = 8;                  ///< elements of one load
constexpr std::int64_t kFewestElements = 1 << 18;  ///< 1 MiB of fp32: fewer stay in a cache
constexpr std::int64_t kLeastLoads = 2048;         ///< for which another thread is worth it

bool suits(const at::Tensor& from, const at::Tensor& to) {
  return from.is_cpu() && to.is_cpu() && from.scalar_type() == at::kBFloat16 &&
         to.scalar_type() == at::kFloat && from.is_contiguous() && to.is_contiguous() &&
         from.numel() >= kFewestElements && from.numel() % kLoad == 0 &&
         reinterpret_cast<std::uintptr_t>(to.const_data_ptr()) % sizeof(__m128i) == 0;
}

/// Converts bf16 to fp32. The bits of a bf16 are the upper half of those of its fp32.
void stream(const c10::BFloat16* from, float* to, std::int64_t count) {
  const __m128i low = _mm_setzero_si128();
  for (std::int64_t i = 0; i < count; i += kLoad) {
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    auto* const place = reinterpret_cast<__m128i*>(to + i);
    _mm_stream_si128(place, _mm_unpacklo_epi16(low, high));
    _mm_stream_si128(place + 1, _mm_unpackhi_epi16(low, high));
  }
  _mm_sfence();  // another thread may read them next
}
#endif

}  // namespace

void widen(const at::Tensor& from, at::Tensor& to) {
#if defined(__SSE2__)
  if (suits(from, to)) {
    const c10::BFloat16* const x = from.const_data_ptr<c10::BFloat16>();
    float* const y = to.mutable_data_ptr<float>();
    RECORD_FUNCTION("scalemark::widen", std::vector<c10::IValue>({from}));  // for traces
    return at::parallel_for(0, from.numel() / kLoad, kLeastLoads, [&](auto begin, auto end) {
      stream(x + begin * kLoad, y + begin * kLoad, (end - begin) * kLoad);
    });
  }
#endif
  to.copy_(from);
}

}  // namespace scalemark
