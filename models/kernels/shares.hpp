// Divides a batch into shares, each computed by one thread alone. Threads that compute many layers
// without waiting for each other are faster than threads that divide the work of each layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scalemark {

/// Returns f(x) for x [N, ...] on the CPU, where f treats each sample independently. Each of
/// torch's threads, at most N, computes f of its share, which has N / threads samples or one more,
/// with operators that run on this thread alone. `f` is called by several threads at once. Inside
/// such a thread, or of any other parallel loop, it just calls f(x).
at::Tensor in_shares(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace scalemark
