// See count_flops.hpp.
#include "models/count_flops.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace scalemark {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

std::int64_t size(const c10::IValue& tensor, std::int64_t dimension) {
  return tensor.toTensor().size(dimension);
}

/// Of one output channel of a convolution: weight [out, in / groups, ...].
std::int64_t of_weight(const Inputs& inputs) {
  return c10::multiply_integers(inputs[1].toTensor().sizes().slice(1));
}

/// Of an operator: multiply-adds per element of its output, or of its first input.
struct Counted {
  std::string_view name;
  std::function<std::int64_t(const Inputs&)> multiply_adds;
  bool of_input = false;
};
const std::array<Counted, 15>& counted() {
  constexpr auto last_of_first = [](const Inputs& inputs) { return size(inputs[0], -1); };
  constexpr auto last_of_second = [](const Inputs& inputs) { return size(inputs[1], -1); };
  static const std::array<Counted, 15> operators{{
      {"aten::conv1d", of_weight},
      {"aten::conv2d", of_weight},
      {"aten::conv3d", of_weight},
      {"aten::conv_transpose1d", of_weight, true},
      {"aten::conv_transpose2d", of_weight, true},
      {"aten::conv_transpose3d", of_weight, true},
      {"aten::linear", last_of_second},
      {"aten::matmul", last_of_first},
      {"aten::mm", last_of_first},
      {"aten::bmm", last_of_first},
      {"aten::addmm", last_of_second},
      {"aten::baddbmm", last_of_second},
      // Only what calls it by itself: the others above are outside of it.
      {"aten::convolution", of_weight},
      {"aten::_convolution", of_weight},
      // Scores and values, each over all sources.
      {"aten::scaled_dot_product_attention",
       [](const Inputs& inputs) { return 2 * size(inputs[1], -2); }},
  }};
  return operators;
}

thread_local std::int64_t flops = 0, depth = 0;

/// A counted operator under way. Its inputs can be seen only at its start, its output only at its
/// end; what it calls itself is part of it.
struct Call : at::ObserverContext {
  explicit Call(std::int64_t terms) : multiply_adds(terms) { ++depth; }
  ~Call() override { --depth; }
  std::int64_t multiply_adds;  ///< per element of the output; 0: already counted
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  const auto found = std::ranges::find(counted(), std::string_view(call.name()), &Counted::name);
  if (depth > 0 || found == counted().end()) return nullptr;
  const std::int64_t multiply_adds = found->multiply_adds(call.inputs());
  if (!found->of_input) return std::make_unique<Call>(multiply_adds);
  flops += 2 * multiply_adds * call.inputs()[0].toTensor().numel();
  return std::make_unique<Call>(0);
}

void on_end(const at::RecordFunction& call, at::ObserverContext* context) {
  const auto* operation = dynamic_cast<Call*>(context);
  if (operation && operation->multiply_adds > 0)
    flops += 2 * operation->multiply_adds * call.outputs()[0].toTensor().numel();
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
