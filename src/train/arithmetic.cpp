// Maps precisions to LibTorch's types, selects operators, and sets and tests the processor's flags
// for denormal numbers.
#include "train/arithmetic.hpp"

#include <ATen/Context.h>

#include <limits>
#include <stdexcept>

#include "train/device_backend.hpp"

namespace scalemark {

at::ScalarType compute_dtype(Precision precision) {
  if (precision == Precision::bf16) return at::kBFloat16;
  return precision == Precision::fp16 ? at::kHalf : at::kFloat;
}

bool flush_denormals(bool on) { return at::globalContext().setFlushDenormal(on); }

bool denormals_are_flushed() {
  const volatile float smallest = std::numeric_limits<float>::min();
  const volatile float half = smallest / 2;
  return half == 0;
}

const OperatorSet& operators_of(const ResolvedConfig& config) {
  if (config.kernels == Kernels::torch) return torch_operators();
  if (config.kernels == Kernels::triton) return gpu_operators();
  if (!own_operators()) throw std::logic_error("--kernels scalemark in a build without them");
  return *own_operators();
}

}  // namespace scalemark
