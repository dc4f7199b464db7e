// See squares.hpp.
#include "models/kernels/squares.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace scalemark {
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

}  // namespace scalemark
