// Computes a step of Adam: the loop over the elements, and their division among threads.
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/util/BFloat16.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "models/operator_set.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// A run of elements that are contiguous in memory. `shadow` holds the weights in bf16; it is null
/// where there is none.
struct AdamElements {
  float* weights;
  const float* gradients;
  float *mean, *square;  ///< running, of the gradient
  c10::BFloat16* shadow;
  std::int64_t count;
};

void run(const AdamElements& elements, const AdamRates& rates);

namespace {

template <bool shadow>
SCALEMARK_INLINE void adam(const AdamElements& elements, const AdamRates& rates) {
  const auto [weights, gradients, mean, square, narrow, count] = elements;
  const auto [of_mean, of_square, decay, shrink, rate, correction, epsilon] = rates;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    float w = weights[i];
    const float g = gradients[i] + decay * w;
    const float m = mean[i] + of_mean * (g - mean[i]);
    const float s = square[i] + of_square * (g * g - square[i]);
    w = shrink * w - rate * m / (std::sqrt(s) / correction + epsilon);
    mean[i] = m;
    square[i] = s;
    weights[i] = w;
    if constexpr (shadow) store(narrow[i], w);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void run(const AdamElements& elements, const AdamRates& rates) {
  elements.shadow ? adam<true>(elements, rates) : adam<false>(elements, rates);
}

namespace {

constexpr std::int64_t kAdamGrain = 1 << 14;  ///< elements for which another thread is worth it

}  // namespace

void adam_in_one_pass(const AdamTensors& tensors, const AdamRates& rates) {
  const AdamElements all{
      tensors.weights.mutable_data_ptr<float>(),
      tensors.gradients.const_data_ptr<float>(),
      tensors.mean.mutable_data_ptr<float>(),
      tensors.square.mutable_data_ptr<float>(),
      tensors.shadow.defined() ? tensors.shadow.mutable_data_ptr<c10::BFloat16>() : nullptr,
      tensors.weights.numel()};
  RECORD_FUNCTION("scalemark::adam", std::vector<c10::IValue>({tensors.weights}));  // for traces
  at::parallel_for(0, all.count, kAdamGrain, [&](std::int64_t begin, std::int64_t end) {
    run({all.weights + begin, all.gradients + begin, all.mean + begin, all.square + begin,
         all.shadow ? all.shadow + begin : nullptr, end - begin},
        rates);
  });
}

}  // namespace scalemark
