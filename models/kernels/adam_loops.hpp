// Internal to adam.cpp: the loop over the elements of a step of Adam.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "models/operator_set.hpp"

namespace scalemark {

/// Elements that are contiguous in memory. `shadow` holds the weights in bf16; it is null where
/// there is none.
struct AdamElements {
  float* weights;
  const float* gradients;
  float *mean, *square;  ///< running, of the gradient
  c10::BFloat16* shadow;
  std::int64_t count;
};

void run(const AdamElements& elements, const AdamRates& rates);

}  // namespace scalemark
