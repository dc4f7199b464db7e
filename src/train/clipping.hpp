// Clips gradients by their global norm (Pascanu et al. 2013), --clip_norm, on the flat buckets.
#pragma once

#include <vector>

#include "train/flat_parameters.hpp"

namespace scalemark {

/// 2-norm of the gradients of all buckets together, fp64 scalar on their device; squares are summed
/// in fp64. With our own operators the sum on the CPU does not depend on the number of threads:
/// ranks that hold the same gradients get the same bits, so that they need not agree on the norm.
/// LibTorch's gives them to ranks with as many threads.
at::Tensor gradient_norm(const std::vector<Bucket>& buckets, const OperatorSet& operators);

/// Multiplies the gradients by min(1, most / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_
/// does. Where the norm is not finite, the gradients are not finite afterwards.
void clip_gradients(std::vector<Bucket>& buckets, double most, const OperatorSet& operators);

}  // namespace scalemark
