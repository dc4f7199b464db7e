// See clipping.hpp.
#include "train/clipping.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace scalemark {
namespace {

/// Elements summed one after the other; the blocks' sums are added in their order.
constexpr std::int64_t kBlock = 1 << 14;
constexpr std::int64_t kBlocksPerTask = 8;

double sum_of_squares(const float* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;  // independent sums, which the compiler can compute at once
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

double sum_of_squares(const at::Tensor& flat) {
  const float* data = flat.const_data_ptr<float>();
  const std::int64_t count = flat.numel();
  std::vector<double> sums(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  at::parallel_for(0, static_cast<std::int64_t>(sums.size()), kBlocksPerTask,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t block = begin; block < end; ++block)
                       sums[static_cast<std::size_t>(block)] = sum_of_squares(
                           data + block * kBlock, std::min(kBlock, count - block * kBlock));
                   });
  return std::accumulate(sums.begin(), sums.end(), 0.);
}

}  // namespace

at::Tensor gradient_norm(const std::vector<Bucket>& buckets) {
  const at::Tensor& first = buckets.front().gradients;
  if (first.is_cpu()) {
    double squares = 0;
    for (const Bucket& bucket : buckets) squares += sum_of_squares(bucket.gradients);
    return at::scalar_tensor(squares, at::kDouble).sqrt();
  }
  std::vector<at::Tensor> norms;
  for (const Bucket& bucket : buckets)
    norms.push_back(at::linalg_vector_norm(bucket.gradients, 2, std::nullopt, false, at::kDouble));
  return at::linalg_vector_norm(at::stack(norms), 2);
}

void clip_gradients(std::vector<Bucket>& buckets, double most) {
  const at::NoGradGuard no_grad;
  const at::Tensor factor = (most / (gradient_norm(buckets) + 1e-6)).clamp_max(1.);
  // On CUDA the product by 1 costs less than waiting for the norm.
  if (factor.is_cpu() && factor.item<double>() == 1) return;
  for (Bucket& bucket : buckets) bucket.gradients.mul_(factor);
}

}  // namespace scalemark
