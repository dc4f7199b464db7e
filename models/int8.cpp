// Quantises weights and activations and calls LibTorch's int8 operators. Packing and the sum with a
// residual are reached through the dispatcher.
#include "models/int8.hpp"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace scalemark {
namespace {

template <typename... Argument>
c10::IValue call_boxed(const char* name, Argument&&... arguments) {
  torch::jit::Stack stack{c10::IValue(std::forward<Argument>(arguments))...};
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack.front();
}

/// Returns the number of levels of an activation. Without VNNI two products are added in 16 bits,
/// and 7 bits of activation prevent an overflow.
std::int64_t activation_levels() { return at::cpu::is_avx512_vnni_supported() ? 255 : 127; }

/// Quantises symmetrically, with one scale for each row or output channel. A row of zeros stays
/// zero.
at::Tensor quantized_weight(const at::Tensor& weight) {
  const at::Tensor largest = weight.flatten(1).abs().amax(1).to(at::kDouble);
  const at::Tensor scale = at::where(largest > 0, largest / 127, 1.);
  const at::Tensor zero_point = at::zeros({weight.size(0)}, at::kLong);
  return at::quantize_per_channel(weight, scale, zero_point, 0, at::kQInt8);
}

c10::List<std::int64_t> list(at::IntArrayRef values) { return c10::List<std::int64_t>(values); }

}  // namespace

bool has_int8_operators() {
  const auto& engines = at::globalContext().supportedQEngines();
  return std::ranges::count(engines, at::QEngine::ONEDNN) > 0 &&
         std::ranges::count(engines, at::QEngine::X86) > 0;
}

void ActivationRange::add(const at::Tensor& x) {
  const auto [least, most] = at::aminmax(x);
  lo_ = std::min(lo_, least.item<double>());
  hi_ = std::max(hi_, most.item<double>());
}

double ActivationRange::scale() const {
  return hi_ > lo_ ? (hi_ - lo_) / static_cast<double>(activation_levels()) : 1;
}

std::int64_t ActivationRange::zero_point() const { return std::llround(-lo_ / scale()); }

at::Tensor ActivationRange::quantized(const at::Tensor& x) const {
  return at::quantize_per_tensor(x, scale(), zero_point(), at::kQUInt8);
}

Int8Conv::Int8Conv(const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef stride,
                   at::IntArrayRef padding, ActivationRange input, ActivationRange output)
    : input_(input), output_(output) {
  // This is the engine that can add a residual.
  at::globalContext().setQEngine(at::QEngine::ONEDNN);
  packed_ = call_boxed("quantized::conv2d_prepack", quantized_weight(weight), bias, list(stride),
                       list(padding), list({1, 1}), 1)
                .toCustomClass<ConvPackedParamsBase<2>>();
}

at::Tensor Int8Conv::forward(const at::Tensor& x, Activation activation) const {
  if (activation == Activation::relu)
    return packed_->apply_relu(taken(x), output_.scale(), output_.zero_point());
  const at::Tensor y = packed_->apply(taken(x), output_.scale(), output_.zero_point());
  return activation == Activation::none ? y : activated(y.dequantize(), activation);
}

at::Tensor Int8Conv::add_relu(const at::Tensor& x, const at::Tensor& residual) const {
  return call_boxed("quantized::conv2d_add_relu", taken(x), residual, packed_, output_.scale(),
                    output_.zero_point())
      .toTensor();
}

Int8Linear::Int8Linear(const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  at::globalContext().setQEngine(at::QEngine::X86);  // packs for the faster of its two
  packed_ = call_boxed("quantized::linear_prepack", quantized_weight(weight), bias)
                .toCustomClass<LinearPackedParamsBase>();
  at::globalContext().setQEngine(at::QEngine::ONEDNN);  // is asked at every sum with a residual
}

at::Tensor Int8Linear::forward(const at::Tensor& x, Activation activation) const {
  const bool reduced = activation_levels() < 255;
  const at::Tensor from = dequantized(x).contiguous();
  if (activation == Activation::relu) return packed_->apply_dynamic_relu(from, reduced);
  return activated(packed_->apply_dynamic(from, reduced), activation);
}

at::Tensor dequantized(const at::Tensor& x) { return x.is_quantized() ? x.dequantize() : x; }

at::Tensor concatenated(const std::vector<at::Tensor>& parts, std::int64_t dim) {
  if (!parts.front().is_quantized()) return at::cat(parts, dim);
  const auto coarsest =
      std::ranges::max_element(parts, {}, [](const at::Tensor& part) { return part.q_scale(); });
  return call_boxed("quantized::cat", parts, dim, coarsest->q_scale(), coarsest->q_zero_point())
      .toTensor();
}

}  // namespace scalemark
