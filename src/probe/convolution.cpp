// See convolution.hpp.
#include "probe/convolution.hpp"

#include "measure/clock.hpp"

namespace scalemark {

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
