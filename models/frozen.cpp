// Implements frozen layers with cuDNN's and oneDNN's fused operators, which are reached through the
// dispatcher: LibTorch has no C++ function for them.
#include "models/frozen.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cudnn_convolution_add_relu.h>
#include <ATen/ops/cudnn_convolution_relu.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "models/sequence_layers.hpp"

namespace scalemark {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 5> kOperators{{
    {"mkldnn::_convolution_pointwise", ""},
    {"mkldnn::_convolution_pointwise_", "binary"},
    {"mkldnn::_reorder_convolution_weight", ""},
    {"mkldnn::_linear_pointwise", ""},
    {"mkldnn::_reorder_linear_weight", ""},
}};
constexpr std::array<std::int64_t, 2> kNoDilation{1, 1};

using Bias = std::optional<at::Tensor>;
using Scalars = c10::List<std::optional<at::Scalar>>;
using Word = std::optional<std::string_view>;

template <typename Signature>
auto find_operator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

/// Returns a fused operator's name for the activation, and the variant: for GELU the exact one.
std::pair<std::string_view, Word> name_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return {"none", ""};
    case Activation::relu:
      return {"relu", ""};
    case Activation::gelu:
      return {"gelu", "none"};
    case Activation::gelu_tanh:
      return {"gelu", "tanh"};
    case Activation::swiglu:  // of two columns each
      break;
  }
  throw std::invalid_argument("an activation without a name");
}

bool use_fused_operators(const at::Tensor& weight) {
  return weight.is_cpu() && has_fused_operators(weight.scalar_type());
}

/// Returns the type in which layers compute before they are quantised.
at::ScalarType before_int8(at::ScalarType dtype) {
  return dtype == at::kQInt8 ? at::kFloat : dtype;
}

/// Visits the layers of a network that have a frozen form.
void for_each_freezable(torch::nn::Module& module, const std::function<void(Freezable&)>& visit) {
  if (auto* layer = dynamic_cast<Freezable*>(&module)) return visit(*layer);
  for (const auto& child : module.children()) for_each_freezable(*child, visit);
}

}  // namespace

bool has_fused_operators(at::ScalarType dtype) {
  static const bool present =
      at::hasMKLDNN() && std::ranges::all_of(kOperators, [](const auto& known) {
        return c10::Dispatcher::singleton().findSchema({known.first, known.second}).has_value();
      });
  if (!present || dtype == at::kFloat) return present;
  return dtype == at::kBFloat16 &&
         find_operator<bool()>("mkldnn::_is_mkldnn_bf16_supported").call();
}

FrozenConv::FrozenConv(const OperatorSet& operators, const at::Tensor& weight,
                       const at::Tensor& bias, const ConvOptions& options, at::ScalarType dtype)
    : operators_(operators),
      weight_(weight.detach().to(before_int8(dtype))),
      bias_(bias.detach().to(before_int8(dtype))),
      stride_(2, options.stride),
      padding_(options.padding->begin(), options.padding->end()),
      fused_(use_fused_operators(weight_)),
      of_cudnn_(weight_.is_cuda() && at::globalContext().userEnabledCuDNN()),
      notes_ranges_(dtype == at::kQInt8) {
  if (notes_ranges_) exact_ = weight_;
}

at::Tensor FrozenConv::plain(const at::Tensor& x) const {
  return at::conv2d(x, weight_, bias_, stride_, padding_);
}

/// Packs the weight on first use. oneDNN chooses the layout for the shape of that use; other shapes
/// work with it too.
const at::Tensor& FrozenConv::packed_for(const at::Tensor& x) {
  static const auto pack =
      find_operator<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                               std::int64_t, at::OptionalIntArrayRef)>(
          "mkldnn::_reorder_convolution_weight");
  if (!packed_) weight_ = pack.call(weight_, padding_, stride_, kNoDilation, 1, x.sizes());
  packed_ = true;
  return weight_;
}

const FixedConvolution* FrozenConv::fixed_for(const at::Tensor& x) {
  if (!packed_ && !fixed_) {
    fixed_ = operators_.fixed_convolution(x, weight_, stride_, padding_);
    if (fixed_) weight_ = at::Tensor();
  }
  return fixed_.get();
}

at::Tensor FrozenConv::noted(const at::Tensor& x, at::Tensor y) {
  if (!notes_ranges_) return y;
  input_.add(x);
  output_.add(y);
  return y;
}

void FrozenConv::quantize() {
  int8_ = std::make_unique<Int8Conv>(exact_, bias_, stride_, padding_, input_, output_);
  weight_ = bias_ = exact_ = at::Tensor();
  fixed_.reset();
}

at::Tensor FrozenConv::forward(const at::Tensor& x, Activation activation) {
  return int8_ ? int8_->forward(x, activation) : noted(x, convolve(x, activation));
}

at::Tensor FrozenConv::add_relu(const at::Tensor& x, at::Tensor residual) {
  return int8_ ? int8_->add_relu(x, residual) : noted(x, convolve_add_relu(x, residual));
}

at::Tensor FrozenConv::convolve(const at::Tensor& x, Activation activation) {
  // cuDNN can add a bias in its convolution, but LibTorch's plain call makes that a separate pass.
  if (of_cudnn_ && activation == Activation::relu)
    return at::cudnn_convolution_relu(x, weight_, bias_, stride_, padding_, kNoDilation, 1);
  if (!fused_) return activated(plain(x), activation);
  if (const FixedConvolution* const fixed = fixed_for(x)) {
    const bool relu = activation == Activation::relu;
    return activated((*fixed)(x, bias_, relu), relu ? Activation::none : activation);
  }
  static const auto convolution =
      find_operator<at::Tensor(const at::Tensor&, const at::Tensor&, const Bias&, at::IntArrayRef,
                               at::IntArrayRef, at::IntArrayRef, std::int64_t, std::string_view,
                               Scalars, Word)>("mkldnn::_convolution_pointwise");
  const auto [name, variant] = name_of(activation);
  return convolution.call(x, packed_for(x), bias_, padding_, stride_, kNoDilation, 1, name,
                          Scalars(), variant);
}

at::Tensor FrozenConv::convolve_add_relu(const at::Tensor& x, at::Tensor residual) {
  if (of_cudnn_)
    return at::cudnn_convolution_add_relu(x, weight_, residual, /*alpha=*/1., bias_, stride_,
                                          padding_, kNoDilation, 1);
  if (!fused_) return residual.add_(plain(x)).relu_();
  if (const FixedConvolution* const fixed = fixed_for(x))
    return (*fixed)(x, bias_, /*relu=*/true, residual);
  static const auto convolution =
      find_operator<at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&, const Bias&,
                                at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t,
                                std::string_view, std::optional<at::Scalar>, Word, Scalars, Word)>(
          "mkldnn::_convolution_pointwise_", "binary");
  return convolution.call(residual, x, packed_for(x), bias_, padding_, stride_, kNoDilation, 1,
                          "add", 1.0, "relu", Scalars(), "");
}

FrozenLinear::FrozenLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype)
    : weight_(weight.detach().to(before_int8(dtype))),
      fused_(use_fused_operators(weight_) && dtype != at::kQInt8) {
  if (bias.defined()) bias_ = bias.detach().to(before_int8(dtype));
}

void FrozenLinear::quantize() {
  int8_ = std::make_unique<Int8Linear>(weight_, bias_);
  weight_ = at::Tensor();
  bias_.reset();
}

at::Tensor FrozenLinear::forward(const at::Tensor& x, Activation activation) {
  if (int8_) return int8_->forward(x, activation);
  if (!fused_) return activated(at::linear(x, weight_, bias_), activation);
  if (halves(activation)) return activated(forward(x), activation);
  static const auto pack =
      find_operator<at::Tensor(const at::Tensor&, std::optional<std::int64_t>)>(
          "mkldnn::_reorder_linear_weight");
  static const auto product =
      find_operator<at::Tensor(const at::Tensor&, const at::Tensor&, const Bias&, std::string_view,
                               Scalars, Word)>("mkldnn::_linear_pointwise");
  if (!packed_) weight_ = pack.call(weight_, x.numel() / x.size(-1));
  packed_ = true;
  const auto [name, variant] = name_of(activation);
  return product.call(x, weight_, bias_, name, Scalars(), variant);
}

void freeze(Model& model, at::ScalarType dtype, bool fused) {
  const at::NoGradGuard no_grad;
  model.eval();
  if (fused) for_each_freezable(model, [&](Freezable& layer) { layer.freeze(dtype); });
  for (const auto& module : model.modules()) {
    const bool norm = module->as<BatchNorm2d>() || module->as<LayerNorm>() || module->as<RmsNorm>();
    for (at::Tensor& parameter : module->parameters(/*recurse=*/false)) {
      if (!norm) parameter.set_data(parameter.to(before_int8(dtype)));
      parameter.set_requires_grad(false);
    }
  }
}

Quantization quantize(Model& model, const Batch& batch) {
  const c10::InferenceMode inference;
  const at::Tensor exact = model.forward(batch);
  Quantization made;
  for_each_freezable(model, [&](Freezable& layer) {
    layer.quantize();
    ++made.layers;
  });
  const at::Tensor rounded = model.forward(batch);
  made.relative_error = ((rounded - exact).abs().max() / exact.abs().max()).item<double>();
  return made;
}

}  // namespace scalemark
