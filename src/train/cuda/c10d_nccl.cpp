// Makes c10d's NCCL process group, for --reducer c10d with --device cuda.
#define USE_C10D_NCCL  // the setting with which LibTorch was built
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "train/c10d/process_group.hpp"

namespace scalemark {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size, int cuda_device,
                                                    C10dTimeout timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  // This connects now, under the deadline of the start-up, and not in the first step.
  backend->eagerConnectSingleDevice({at::kCUDA, static_cast<c10::DeviceIndex>(cuda_device)});
  return backend;
}

}  // namespace scalemark
