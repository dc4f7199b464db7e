// Defined in comm/cuda/ (with NCCL) and comm/no_cuda/ (throws EnvironmentError); the link picks
// one.
#pragma once

#include <memory>
#include <string>

#include "comm/collective_carrier.hpp"
#include "comm/communicator.hpp"

namespace scalemark {
std::unique_ptr<Communicator> make_nccl_communicator(RankGroup& group, int cuda_device);
/// Carries CUDA buffers through pinned host memory and `host` (mpi with --device cuda).
std::unique_ptr<Communicator> make_host_staged_communicator(std::unique_ptr<Communicator> host,
                                                            int cuda_device);
/// Collectives of fp32 on GPU memory; see make_carrier().
std::unique_ptr<CollectiveCarrier> make_nccl_carrier(RankGroup& group, int cuda_device,
                                                     std::int64_t largest, bool in_place);
/// "2.28.9", or empty in a build without NCCL.
std::string nccl_version();
}  // namespace scalemark
