// Implements the device factory of a build without CUDA.
#include "error.hpp"
#include "train/cpu_backend.hpp"

namespace scalemark {

std::unique_ptr<DeviceBackend> make_device_backend(Device device, int /*local_rank*/) {
  if (device == Device::cuda)
    throw EnvironmentError("--device cuda: " + why_no_cuda() + ", or use --device cpu");
  return make_cpu_backend();
}

std::string why_no_cuda() {
  return "this build has no CUDA; build against a LibTorch with CUDA (scripts/setup)";
}

}  // namespace scalemark
