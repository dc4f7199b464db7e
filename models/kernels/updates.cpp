// Computes what an update needs of flat tensors on the CPU, with bits that do not depend on the
// number of threads: the norm of gradients, rows of gradients of a table added to it, and a step of
// Adam.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
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

namespace {

/// The number of elements that are summed one after the other. The sums of the blocks are added in
/// their order.
constexpr std::int64_t kBlockOfSquares = 1 << 14;
constexpr std::int64_t kBlocksPerTask = 8;

double sum_of_squares(const float* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;  // independent sums, which the compiler can vectorise
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.);
}

}  // namespace

at::Tensor norm_of_blocks(const at::Tensor& flat) {
  RECORD_FUNCTION("scalemark::norm", std::vector<c10::IValue>({flat}));
  const float* data = flat.const_data_ptr<float>();
  const std::int64_t count = flat.numel();
  std::vector<double> sums(
      static_cast<std::size_t>((count + kBlockOfSquares - 1) / kBlockOfSquares));
  at::parallel_for(0, static_cast<std::int64_t>(sums.size()), kBlocksPerTask,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t block = begin; block < end; ++block)
                       sums[static_cast<std::size_t>(block)] = sum_of_squares(
                           data + block * kBlockOfSquares,
                           std::min(kBlockOfSquares, count - block * kBlockOfSquares));
                   });
  return at::scalar_tensor(std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.)), at::kDouble);
}

namespace {

/// The smallest number of rows of a table that one thread owns.
constexpr std::int64_t kRowsPerTask = 64;

void add_row(const float* __restrict from, float* __restrict to, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;  // the compiler can add these at once
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) to[i + lane] += from[i + lane];
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

void add_rows_in_order(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows) {
  RECORD_FUNCTION("scalemark::add_rows", std::vector<c10::IValue>({gradient, indices, rows}));
  const std::int64_t width = gradient.size(1), count = indices.numel();
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  const float* from = rows.const_data_ptr<float>();
  float* to = gradient.mutable_data_ptr<float>();
  // A thread owns rows of the table, and looks for them in all of the indices.
  at::parallel_for(0, gradient.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i)
      if (index[i] >= begin && index[i] < end)
        add_row(from + i * width, to + index[i] * width, width);
  });
}

}  // namespace scalemark
