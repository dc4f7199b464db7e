// Sharing the elements among threads.
#include "models/kernels/adam.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <vector>

#include "models/kernels/adam_loops.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kAdamGrain = 1 << 14;  ///< elements for which another thread is worth it

}  // namespace

void adam_in_one_pass(const AdamTensors& tensors, const AdamRates& rates) {
  const AdamElements all{
      tensors.weights.mutable_data_ptr<float>(),
      tensors.gradients.const_data_ptr<float>(),
      tensors.mean.mutable_data_ptr<float>(),
      tensors.square.mutable_data_ptr<float>(),
      tensors.shadow.defined() ? tensors.shadow.mutable_data_ptr<c10::BFloat16>() : nullptr,
      tensors.weights.numel()};
  RECORD_FUNCTION("scalemark::adam", std::vector<c10::IValue>({tensors.weights}));  // for traces
  at::parallel_for(0, all.count, kAdamGrain, [&](std::int64_t begin, std::int64_t end) {
    run({all.weights + begin, all.gradients + begin, all.mean + begin, all.square + begin,
         all.shadow ? all.shadow + begin : nullptr, end - begin},
        rates);
  });
}

}  // namespace scalemark
