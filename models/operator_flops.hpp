// Computes FLOPs of LibTorch's operators from the shapes of their operands, the group of an
// operator from its name, and the FLOPs of a network for which none are stated.
#pragma once

#include <ATen/record_function.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "models/model.hpp"

namespace scalemark {

/// The groups of operators that share a limit of speed.
enum class OperatorGroup {
  convolution,
  matrix_product,
  normalisation,
  optimizer,
  communication,
  other
};
inline constexpr std::array<const char*, 6> kOperatorGroups{
    "convolution", "matrix_product", "normalisation", "optimizer", "communication", "other"};

/// Returns the group of an operator ("aten::mm") or a node of autograd ("MmBackward0") by its name.
/// The result is never `optimizer`, since other code calls the operators of an update, too.
OperatorGroup group_of(std::string_view name);

using OperatorInputs = c10::ArrayRef<const c10::IValue>;

/// An operator whose FLOPs are known: convolutions and matrix products, including attention, and
/// their gradients.
struct CountedOperator {
  /// What the result of multiply_adds() refers to: each element of the output, each element of the
  /// first input, or the whole call.
  enum class Per { output, input, call };
  std::string_view name;
  OperatorGroup group;
  std::int64_t (*multiply_adds)(const OperatorInputs& inputs);
  Per per = Per::output;
};

/// Returns null where the operator is not a counted one.
const CountedOperator* find_counted(std::string_view name);

/// Observes a call of a counted operator at its start, where there are inputs, and at its end,
/// where there is an output. It needs callbacks with both.
class CountedCall {
 public:
  CountedCall(const CountedOperator& counted, const at::RecordFunction& at_start);
  /// Returns the FLOPs, 2 for each multiply-add.
  std::int64_t flops(const at::RecordFunction& at_end) const;

 private:
  std::int64_t multiply_adds_;  ///< of the whole call, or for each element that `per` names
  bool per_output_;
};

/// Returns 2 FLOPs for each multiply-add of the convolutions and matrix products (including
/// attention) that a forward pass of this batch calls, from the shapes of their operands. Other
/// operators are not counted. The pass runs without gradients.
std::int64_t count_forward_flops(Model& model, const Batch& batch);

}  // namespace scalemark
