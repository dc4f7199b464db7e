// Computes cross-entropy over a vocabulary without keeping probabilities or an fp32 copy of the
// logits.
#pragma once

#include <ATen/ATen.h>

namespace scalemark {

/// fp32 or bf16 [rows, classes] on the CPU.
bool suits_cross_entropy(const at::Tensor& logits);

/// As at::cross_entropy_loss of the logits in fp32, summed over the rows: fp32 scalar, with its
/// gradient. `labels`: int64 [rows]; rows of `ignored` count nothing. Throws c10::IndexError at any
/// other label that is no class.
at::Tensor cross_entropy_fused(const at::Tensor& logits, const at::Tensor& labels,
                               std::int64_t ignored, double label_smoothing);

}  // namespace scalemark
