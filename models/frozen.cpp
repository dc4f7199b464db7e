// oneDNN's fused operators, reached through the dispatcher: LibTorch has no C++ function for them.
#include "models/frozen.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
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

/// A fused operator's name for it, and the variant: of GELU the exact one.
std::pair<std::string_view, Word> name_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return {"none", ""};
    case Activation::relu:
      return {"relu", ""};
    case Activation::gelu:
      return {"gelu", "none"};
  }
  throw std::invalid_argument("an activation without a name");
}

bool use_fused_operators(const at::Tensor& weight) {
  return weight.is_cpu() && has_fused_operators(weight.scalar_type());
}

void freeze_below(torch::nn::Module& module, at::ScalarType dtype) {
  if (auto* layer = dynamic_cast<Freezable*>(&module)) return layer->freeze(dtype);
  for (const auto& child : module.children()) freeze_below(*child, dtype);
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

FrozenConv::FrozenConv(const at::Tensor& weight, const at::Tensor& bias, const ConvOptions& options,
                       at::ScalarType dtype)
    : weight_(weight.detach().to(dtype)),
      bias_(bias.detach().to(dtype)),
      stride_(2, options.stride),
      padding_(options.padding->begin(), options.padding->end()),
      fused_(use_fused_operators(weight_)) {}

at::Tensor FrozenConv::plain(const at::Tensor& x) const {
  return at::conv2d(x, weight_, bias_, stride_, padding_);
}

/// oneDNN picks the layout for the shape that it is first used with; others work with it too.
const at::Tensor& FrozenConv::packed_for(const at::Tensor& x) {
  static const auto pack =
      find_operator<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                               std::int64_t, at::OptionalIntArrayRef)>(
          "mkldnn::_reorder_convolution_weight");
  if (!packed_) weight_ = pack.call(weight_, padding_, stride_, kNoDilation, 1, x.sizes());
  packed_ = true;
  return weight_;
}

at::Tensor FrozenConv::forward(const at::Tensor& x, Activation activation) {
  if (!fused_) return activated(plain(x), activation);
  static const auto convolution =
      find_operator<at::Tensor(const at::Tensor&, const at::Tensor&, const Bias&, at::IntArrayRef,
                               at::IntArrayRef, at::IntArrayRef, std::int64_t, std::string_view,
                               Scalars, Word)>("mkldnn::_convolution_pointwise");
  const auto [name, variant] = name_of(activation);
  return convolution.call(x, packed_for(x), bias_, padding_, stride_, kNoDilation, 1, name,
                          Scalars(), variant);
}

at::Tensor FrozenConv::add_relu(const at::Tensor& x, at::Tensor residual) {
  if (!fused_) return residual.add_(plain(x)).relu_();
  static const auto convolution =
      find_operator<at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&, const Bias&,
                                at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t,
                                std::string_view, std::optional<at::Scalar>, Word, Scalars, Word)>(
          "mkldnn::_convolution_pointwise_", "binary");
  return convolution.call(residual, x, packed_for(x), bias_, padding_, stride_, kNoDilation, 1,
                          "add", 1.0, "relu", Scalars(), "");
}

FrozenLinear::FrozenLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype)
    : weight_(weight.detach().to(dtype)), fused_(use_fused_operators(weight_)) {
  if (bias.defined()) bias_ = bias.detach().to(dtype);
}

at::Tensor FrozenLinear::forward(const at::Tensor& x, Activation activation) {
  if (!fused_) return activated(at::linear(x, weight_, bias_), activation);
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
  if (fused) freeze_below(model, dtype);
  for (const auto& module : model.modules()) {
    const bool norm = module->as<BatchNorm2d>() || module->as<LayerNorm>();
    for (at::Tensor& parameter : module->parameters(/*recurse=*/false)) {
      if (!norm) parameter.set_data(parameter.to(dtype));
      parameter.set_requires_grad(false);
    }
  }
}

}  // namespace scalemark
