// Dropout on the CPU without torch's bernoulli_, which draws every mask element in turn on one
// thread and costs a Transformer 8 to 12 % of its step. Masks come from a counter: they depend on
// the key of the call and the place of the element alone, so they are the same for every number of
// threads, and the backward pass draws them again instead of keeping them.
#pragma once

#include <torch/torch.h>

namespace scalemark {

/// x with every element zeroed with `probability` and the others scaled by 1 / (1 - probability)
/// (Srivastava et al. 2014). Any shape; fp32 and bf16 on the CPU are ours (the probability in steps
/// of 2^-16), everything else torch's. The key is drawn from torch's default generator.
at::Tensor dropout(const at::Tensor& x, double probability);

/// dropout(relu(x)), in one pass each way.
at::Tensor relu_dropout(const at::Tensor& x, double probability);

}  // namespace scalemark
