// Declares the loops over the classes of a row, for fp32 and bf16. Internal to cross_entropy.cpp.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace scalemark {

/// What the loss needs of a row.
struct RowSums {
  float highest;       ///< logit
  float exponentials;  ///< sum of those of the differences from it
  float sum;           ///< of the logits
};
RowSums sums_of(const float* logits, std::int64_t classes);
RowSums sums_of(const c10::BFloat16* logits, std::int64_t classes);

/// gradient = scale (inverse exp(logit - highest) - share).
template <typename T>
struct CrossEntropyGradient {
  const T* logits;
  T* gradient;
  std::int64_t classes;
  float highest, inverse, scale, share;
};
void run(const CrossEntropyGradient<float>& row);
void run(const CrossEntropyGradient<c10::BFloat16>& row);

}  // namespace scalemark
