// Repeated square matrix products; each is timed by the device's own clock.
#include "probe/gemm.hpp"

#include "measure/statistics.hpp"
#include "probe/repeat.hpp"

namespace scalemark {

GemmRates measure_gemm(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                       double seconds) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(dtype).device(device.device());
  // Equal elements toggle fewer transistors: a GPU would clock higher than in any training.
  const at::Tensor a = at::empty({size, size}, options).uniform_(-1, 1),
                   b = at::empty({size, size}, options).uniform_(-1, 1);
  at::Tensor c = at::empty({size, size}, options);
  at::mm_out(c, a, b);  // loads the library, fills caches
  device.synchronize();

  constexpr std::size_t fewest_products = 5;
  const auto clock = device.make_step_clock();
  clock->mark();
  const std::vector<double> times = repeat_for(seconds, fewest_products, [&] {
    at::mm_out(c, a, b);
    clock->mark();
    device.synchronize();
    return clock->seconds().back();
  });
  const double flops =
      2. * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  return {flops / median(times), flops / mean(times)};
}

double measure_gemm_flops(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                          double seconds) {
  return measure_gemm(device, dtype, size, seconds).median;
}

}  // namespace scalemark
