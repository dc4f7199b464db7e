// Computes batch normalisation of training, the addition of the residual and ReLU in two passes in
// each direction on the CPU: one that reduces, one that writes. Torch takes three to five, operator
// by operator. For the backward pass it keeps the input and, with a residual, the output.
#pragma once

#include <torch/torch.h>

#include "models/operator_set.hpp"

namespace scalemark {

/// True for activations that batch_norm_fused() takes: fp32 or bf16 on the CPU, [N, channels, H, W]
/// in channels_last memory, with at least two values of a channel.
bool can_fuse_batch_norm(const at::Tensor& x);

/// relu(gamma (x - mean) / sqrt(variance + epsilon) + beta + residual) with the batch's mean and
/// variance (Ioffe and Szegedy 2015, algorithm 1), in the shape and dtype of x. Sums are kept in
/// float64, differences in fp32. `residual`: like x; undefined: none, and none but then without
/// `relu`. Running statistics move by `momentum` towards the batch's, as torch's, of the unbiased
/// variance. The result is the same for the same number of threads.
at::Tensor batch_norm_fused(const at::Tensor& x, const BatchNormTensors& layer, double momentum,
                            double epsilon, bool relu, const at::Tensor& residual = {});

}  // namespace scalemark
