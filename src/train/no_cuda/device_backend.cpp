// Implements the device factory and the NCCL backend of c10d for a build without CUDA.

#include "train/device_backend.hpp"

#include "error.hpp"
#include "train/c10d/process_group.hpp"

namespace scalemark {

std::unique_ptr<DeviceBackend> make_device_backend(Device device, int /*local_rank*/) {
  if (device == Device::cuda)
    throw EnvironmentError("--device cuda: " + why_no_cuda() + ", or use --device cpu");
  return make_cpu_backend();
}

std::string why_no_cuda() {
  return "this build has no CUDA; build against a LibTorch with CUDA (scripts/setup)";
}

const OperatorSet& gpu_operators() {
  throw EnvironmentError("--kernels triton: " + why_no_cuda() + ", or use --kernels scalemark");
}

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&, int,
                                                    int, int, C10dTimeout) {
  throw EnvironmentError("--reducer c10d: this build has no NCCL; use --device cpu");
}

}  // namespace scalemark
