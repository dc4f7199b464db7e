// SGD through LibTorch's fused operator (vectorised and threaded on the CPU, one kernel on CUDA).
#include "train/optimizer.hpp"

#include <ATen/ops/_fused_sgd.h>

#include <algorithm>

namespace scalemark {
namespace {

/// Elements updated at a time on the CPU: small enough that the shadow is refreshed from weights
/// still in cache.
constexpr std::int64_t kChunk = 1 << 18;

}  // namespace

SgdOptimizer::SgdOptimizer(double learning_rate, double momentum, double weight_decay)
    : learning_rate_(learning_rate), momentum_(momentum), weight_decay_(weight_decay) {}

void SgdOptimizer::step(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  const bool chunked = bucket.shadow.defined() && bucket.weights.is_cpu();
  const std::int64_t chunk = chunked ? kChunk : bucket.count;
  for (std::int64_t begin = 0; begin < bucket.count; begin += chunk) {
    const std::int64_t count = std::min(chunk, bucket.count - begin);
    const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, begin, count); };
    const at::Tensor weights = part(bucket.weights);
    // The momentum starts as zero, so that the first step is no special case.
    at::_fused_sgd_(
        weights, part(bucket.gradients),
        bucket.momentum.defined() ? std::vector{part(bucket.momentum)} : std::vector<at::Tensor>{},
        weight_decay_, momentum_, learning_rate_, /*dampening=*/0., /*nesterov=*/false,
        /*maximize=*/false, /*is_first_step=*/false);
    if (bucket.shadow.defined()) part(bucket.shadow).copy_(weights);
  }
}

}  // namespace scalemark
