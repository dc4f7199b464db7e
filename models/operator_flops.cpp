// Lists operators with the formulas of their multiply-adds, and their groups.
#include "models/operator_flops.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

namespace scalemark {

namespace {

using Inputs = OperatorInputs;
using Per = CountedOperator::Per;
constexpr auto kConvolution = OperatorGroup::convolution;
constexpr auto kProduct = OperatorGroup::matrix_product;

std::int64_t size(const c10::IValue& tensor, std::int64_t dimension) {
  return tensor.toTensor().size(dimension);
}

std::int64_t last_of_first(const Inputs& inputs) { return size(inputs[0], -1); }
std::int64_t last_of_second(const Inputs& inputs) { return size(inputs[1], -1); }

/// Returns the multiply-adds for each element of the output of a convolution, from the weight [out,
/// in / groups, ...]; for a transposed one, for each element of the input, from the weight [in, out
/// / groups, ...].
std::int64_t of_weight(const Inputs& inputs) {
  return c10::multiply_integers(inputs[1].toTensor().sizes().slice(1));
}

/// Counts aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding,
/// dilation, transposed, output_padding, groups, output_mask): each requested gradient costs the
/// same as the forward pass.
std::int64_t of_convolution_backward(const Inputs& inputs) {
  const bool transposed = inputs[7].toBool();
  const at::Tensor& weight = inputs[2].toTensor();
  const std::int64_t elements = inputs[transposed ? 1 : 0].toTensor().numel();
  const std::int64_t once = elements * c10::multiply_integers(weight.sizes().slice(1));
  const auto mask = inputs[10].toBoolList();
  return once * (static_cast<int>(mask.get(0)) + static_cast<int>(mask.get(1)));
}

/// Counts scores and values, each over all sources, for each element of the output.
std::int64_t of_attention(const Inputs& inputs) { return 2 * size(inputs[1], -2); }

/// Counts the gradients of two products, two each, with the arguments (grad_output, query, key,
/// value, ...). The repeated computation of scores is not counted.
std::int64_t of_attention_backward(const Inputs& inputs) {
  const at::Tensor& query = inputs[1].toTensor();
  const std::int64_t sources = size(inputs[2], -2);
  return 2 * sources * (query.numel() + query.numel() / query.size(-1) * size(inputs[3], -1));
}

/// Counts, for Winograd's filters [16, panels, in, panel], the cost of the direct convolution that
/// they replace.
std::int64_t of_filters(const Inputs& inputs) { return 9 * size(inputs[1], 2); }

const std::array<CountedOperator, 31>& counted() {
  static const std::array<CountedOperator, 31> operators{{
      {"aten::conv1d", kConvolution, of_weight},
      {"aten::conv2d", kConvolution, of_weight},
      {"aten::conv3d", kConvolution, of_weight},
      {"aten::conv_transpose1d", kConvolution, of_weight, Per::input},
      {"aten::conv_transpose2d", kConvolution, of_weight, Per::input},
      {"aten::conv_transpose3d", kConvolution, of_weight, Per::input},
      {"aten::convolution_backward", kConvolution, of_convolution_backward, Per::call},
      {"mkldnn::_convolution_pointwise", kConvolution, of_weight},
      {"aten::cudnn_convolution_relu", kConvolution, of_weight},
      {"aten::cudnn_convolution_add_relu", kConvolution, of_weight},
      {"scalemark::conv2d", kConvolution, of_filters},
      {"scalemark::conv2d_input_gradient", kConvolution, of_filters},
      {"scalemark::conv2d_weight_gradient", kConvolution, of_weight, Per::input},
      {"aten::linear", kProduct, last_of_second},
      {"mkldnn::_linear_pointwise", kProduct, last_of_first},
      {"aten::matmul", kProduct, last_of_first},
      {"aten::mm", kProduct, last_of_first},
      {"scalemark::mm", kProduct, last_of_first},
      {"aten::bmm", kProduct, last_of_first},
      {"aten::addmm", kProduct, last_of_second},
      {"aten::baddbmm", kProduct, last_of_second},
      // An operator counts only where it is called directly, since a call from another counted
      // operator is part of that one.
      {"aten::convolution", kConvolution, of_weight},
      {"aten::_convolution", kConvolution, of_weight},
      {"aten::scaled_dot_product_attention", kProduct, of_attention},
      {"scalemark::attention", kProduct, of_attention},
      {"scalemark::attention_backward", kProduct, of_attention_backward, Per::call},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kProduct,
       of_attention_backward, Per::call},
      {"aten::_scaled_dot_product_flash_attention_backward", kProduct, of_attention_backward,
       Per::call},
      {"aten::_scaled_dot_product_efficient_attention_backward", kProduct, of_attention_backward,
       Per::call},
      {"aten::_scaled_dot_product_cudnn_attention_backward", kProduct, of_attention_backward,
       Per::call},
      // The arguments are (other operand, input, weight, ...); the output is the first one.
      {"mkldnn::_convolution_pointwise_", kConvolution,
       [](const Inputs& inputs) {
         return c10::multiply_integers(inputs[2].toTensor().sizes().slice(1));
       },
       Per::input},
  }};
  return operators;
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

const CountedOperator* find_counted(std::string_view name) {
  const auto found = std::ranges::find(counted(), name, &CountedOperator::name);
  return found == counted().end() ? nullptr : &*found;
}

OperatorGroup group_of(std::string_view name) {
  if (const CountedOperator* known = find_counted(name)) return known->group;
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (contains_any(lower, {"convolution", "conv1d", "conv2d", "conv3d", "conv_depthwise"}))
    return kConvolution;
  if (contains_any(lower, {"batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm",
                           "batchnorm", "layernorm", "groupnorm"}))
    return OperatorGroup::normalisation;
  if (contains_any(lower,
                   {"quantized::linear", "mkldnn_linear", "fbgemm_linear", "scaled_dot_product",
                    "scaleddotproduct", "mmbackward", "matmulbackward", "linearbackward"}))
    return kProduct;
  if (lower.starts_with("c10d::")) return OperatorGroup::communication;
  return OperatorGroup::other;
}

CountedCall::CountedCall(const CountedOperator& counted, const at::RecordFunction& at_start)
    : multiply_adds_(counted.multiply_adds(at_start.inputs())),
      per_output_(counted.per == Per::output) {
  if (counted.per == Per::input) multiply_adds_ *= at_start.inputs()[0].toTensor().numel();
}

std::int64_t CountedCall::flops(const at::RecordFunction& at_end) const {
  if (!per_output_) return 2 * multiply_adds_;
  if (at_end.outputs().empty()) return 0;  // the operator has thrown
  return 2 * multiply_adds_ * at_end.outputs()[0].toTensor().numel();
}

namespace {

thread_local std::int64_t flops = 0, depth = 0;

/// A counted operator that is running. The operators that it calls are part of it.
struct Call : at::ObserverContext {
  explicit Call(CountedCall counted) : call(counted) { ++depth; }
  ~Call() override { --depth; }
  CountedCall call;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  const CountedOperator* counted = depth > 0 ? nullptr : find_counted(call.name());
  return counted ? std::make_unique<Call>(CountedCall(*counted, call)) : nullptr;
}

void on_end(const at::RecordFunction& call, at::ObserverContext* context) {
  if (const auto* counted = dynamic_cast<Call*>(context)) flops += counted->call.flops(call);
}

}  // namespace

std::int64_t count_forward_flops(Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  flops = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  model.forward(batch);
  at::removeCallback(handle);
  return flops;
}

}  // namespace scalemark
