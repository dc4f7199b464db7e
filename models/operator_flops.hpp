// FLOPs of LibTorch's operators, from the shapes of their operands, and what kind of operator a
// name is.
#pragma once

#include <ATen/record_function.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace scalemark {

/// Operators that share a limit of speed.
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

/// Of an operator ("aten::mm") or a node of autograd ("MmBackward0"), by its name. Never optimizer:
/// which operators an update calls, other code calls too.
OperatorGroup group_of(std::string_view name);

using OperatorInputs = c10::ArrayRef<const c10::IValue>;

/// An operator whose FLOPs are known: convolutions and matrix products, attention's among them,
/// and their gradients.
struct CountedOperator {
  /// What multiply_adds() gives: for each element of the output, for each of the first input, or of
  /// the whole call.
  enum class Per { output, input, call };
  std::string_view name;
  OperatorGroup group;
  std::int64_t (*multiply_adds)(const OperatorInputs& inputs);
  Per per = Per::output;
};

/// Null where the operator is none of these.
const CountedOperator* find_counted(std::string_view name);

/// A call of one, seen at its start, where there are inputs, and at its end, where there is an
/// output. Needs callbacks with both.
class CountedCall {
 public:
  CountedCall(const CountedOperator& counted, const at::RecordFunction& at_start);
  /// 2 per multiply-add.
  std::int64_t flops(const at::RecordFunction& at_end) const;

 private:
  std::int64_t multiply_adds_;  ///< of the call, or of an element of its output
  bool per_output_;
};

}  // namespace scalemark
