// Attention with dropout on the CPU, where LibTorch's has no kernel of its own and draws slowly.
#pragma once

#include "models/operator_set.hpp"

namespace scalemark {

/// On the CPU with dropout: without it, and on CUDA, LibTorch has fused kernels.
bool suits_attention(const AttentionInputs& inputs, double dropout_probability);

/// softmax(q k^T / sqrt(depth)) v per head, with dropout on the weights; as the queries.
at::Tensor attention_with_dropout(const AttentionInputs& inputs, double dropout_probability);

}  // namespace scalemark
