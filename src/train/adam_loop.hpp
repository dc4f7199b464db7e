// Internal to train/: a step of Adam on the CPU in one pass over memory, which is what it costs.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace scalemark {

/// Elements that lie one after the other; `shadow`: the weights in bf16, null where there is none.
struct AdamElements {
  float* weights;
  const float* gradients;
  float *mean, *square;  ///< running, of the gradient
  c10::BFloat16* shadow;
  std::int64_t count;
};

/// mean += of_mean (g - mean), square += of_square (g^2 - square), with g = gradient + decay
/// weight; weight = shrink weight - rate mean / (sqrt(square) / correction + epsilon).
struct AdamRates {
  float of_mean, of_square, decay, shrink, rate, correction, epsilon;
};

void run(const AdamElements& elements, const AdamRates& rates);

}  // namespace scalemark
