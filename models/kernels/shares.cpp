// Runs a function on shares of a batch, each on a thread of its own whose operators do not divide
// their work again.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include "models/kernels/kernels.hpp"
#if defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <vector>

#include "models/kernels/loops.hpp"

namespace scalemark {

at::Tensor in_shares(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f) {
#if defined(_OPENMP)
  const std::int64_t count = std::min<std::int64_t>(at::get_num_threads(), x.size(0));
  if (count <= 1 || at::in_parallel_region()) return f(x);
  const std::vector<at::Tensor> shares = x.tensor_split(count);
  std::vector<at::Tensor> results(shares.size());
  const at::ThreadLocalState modes;
  return as_operator("scalemark::in_shares", {x}, [&] {
    at::parallel_for(0, static_cast<std::int64_t>(shares.size()), 1, [&](auto begin, auto end) {
      const at::ThreadLocalStateGuard guard(modes);
      omp_set_num_threads(1);  // of this thread in this loop: oneDNN plans for as many
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        results[i] = f(shares[i]);
    });
    return at::cat(results);
  });
#else
  return f(x);
#endif
}

}  // namespace scalemark
