// The device factory of a build without CUDA.
#include "error.hpp"
#include "train/cpu_backend.hpp"

namespace scalemark {

std::unique_ptr<DeviceBackend> make_device_backend(Device device, int /*local_rank*/) {
  if (device == Device::cuda)
    throw EnvironmentError(
        "--device cuda: this build has no CUDA; use --device cpu, or build against a LibTorch with "
        "CUDA "
        "(scripts/setup)");
  return make_cpu_backend();
}

}  // namespace scalemark
