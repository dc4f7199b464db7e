// Implements the NCCL backend for a build without CUDA by refusing.
#include "error.hpp"
#include "train/c10d/process_group.hpp"

namespace scalemark {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&, int,
                                                    int, int, C10dTimeout) {
  throw EnvironmentError("--reducer c10d: this build has no NCCL; use --device cpu");
}

}  // namespace scalemark
