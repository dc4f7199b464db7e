// Says which tensors scalemark's own kernels accept, and runs them as operators, which traces and
// FLOP counts see. Internal to models/.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <initializer_list>
#include <vector>

namespace scalemark {

/// Returns whether x is fp32 or bf16 on the CPU, for which the loops are built.
inline bool suits_loops(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Returns the result of `work`, which is run as the operator `name` on `inputs`.
template <typename Work>
at::Tensor as_operator(const char* name, std::initializer_list<at::Tensor> inputs,
                       const Work& work) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  std::vector<c10::IValue> values;
  if (record.isActive()) values.assign(inputs.begin(), inputs.end());
  record.before(name, &values);
  const at::Tensor y = work();
  if (record.isActive()) record.setOutputs(std::vector<c10::IValue>({y}));
  return y;
}

}  // namespace scalemark
