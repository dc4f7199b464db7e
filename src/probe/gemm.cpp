// Repeats square matrix products and times each with the clock of the device.
#include "probe/gemm.hpp"

#include <numeric>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "probe/memory_bandwidth.hpp"

namespace scalemark {

GemmRates measure_gemm(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                       double seconds) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(dtype).device(device.device());
  // The elements differ because equal ones toggle fewer transistors, and a GPU would clock higher
  // than in any training.
  const at::Tensor a = at::empty({size, size}, options).uniform_(-1, 1),
                   b = at::empty({size, size}, options).uniform_(-1, 1);
  at::Tensor c = at::empty({size, size}, options);
  at::mm_out(c, a, b);  // loads the library, fills caches
  device.synchronize();

  // A device that works behind the host computes one product while the host queues the others and
  // the events between them, so that no launch is part of any of their times.
  const bool behind = device.works_behind_host();
  const int products = behind ? 4 : 1;
  const std::size_t fewest_rounds = behind ? 2 : 5;
  std::vector<double> times;
  repeat_for(seconds, fewest_rounds, [&] {
    const auto clock = device.make_step_clock();
    if (behind) at::mm_out(c, a, b);
    clock->mark();
    for (int i = 0; i < products; ++i) {
      at::mm_out(c, a, b);
      clock->mark();
    }
    device.synchronize();
    const std::vector<double>& round = clock->seconds();
    times.insert(times.end(), round.begin(), round.end());
    return std::accumulate(round.begin(), round.end(), 0.);
  });
  const double flops =
      2. * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  return {flops / median(times), flops / mean(times)};
}

double measure_gemm_flops(DeviceBackend& device, at::ScalarType dtype, std::int64_t size,
                          double seconds) {
  return measure_gemm(device, dtype, size, seconds).median;
}

double measure_convolution_flops(DeviceBackend& device, at::ScalarType dtype, bool training) {
  constexpr std::int64_t kChannels = 64, kSize = 28, kKernel = 3;
  const at::NoGradGuard no_grad;
  const auto make = [&](at::IntArrayRef shape) {
    return at::ones(shape, at::TensorOptions().dtype(dtype).device(device.device()))
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor image = make({1, kChannels, kSize, kSize});
  const at::Tensor kernel = make({kChannels, kChannels, kKernel, kKernel});
  const auto pass = [&] {
    const double begin = steady_seconds();
    const at::Tensor out = at::conv2d(image, kernel, {}, 1, 1);
    if (training)
      at::convolution_backward(out, image, kernel, at::OptionalIntArrayRef(), {1, 1}, {1, 1},
                               {1, 1}, false, {0, 0}, 1, {true, true, false});
    device.synchronize();
    return steady_seconds() - begin;
  };
  pass();  // loads the library
  constexpr double kForward = 2. * kChannels * kChannels * kKernel * kKernel * kSize * kSize;
  return (training ? 3 : 1) * kForward / pass();
}

}  // namespace scalemark
