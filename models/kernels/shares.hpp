// A batch in shares, each computed by one thread alone: threads that go through many layers without
// waiting for each other, and start each layer at the same time, need not share its work.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scalemark {

/// f(x), x [N, ...] on the CPU and f of each sample by itself. Every thread of torch's, at most N,
/// computes f of its share, of N / threads samples or one more, with operators that have this
/// thread alone. `f` is called by several threads at once. In a thread of such, or of any other
/// loop: f(x).
at::Tensor in_shares(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace scalemark
