#include "train/precision.hpp"

namespace scalemark {

at::ScalarType compute_dtype(Precision precision) {
  if (precision == Precision::bf16) return at::kBFloat16;
  return precision == Precision::fp16 ? at::kHalf : at::kFloat;
}

}  // namespace scalemark
