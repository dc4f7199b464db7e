// Declares what needs NCCL. It is defined in comm/cuda/ (with NCCL) and comm/no_cuda/ (throws
// EnvironmentError); the link selects one.
#pragma once

#include <memory>
#include <string>

#include "comm/collective_carrier.hpp"
#include "comm/communicator.hpp"

namespace scalemark {
std::unique_ptr<Communicator> make_nccl_communicator(RankGroup& group, int cuda_device);
/// Makes a communicator that sends CUDA buffers through pinned host memory and `host` (mpi with
/// --device cuda).
std::unique_ptr<Communicator> make_host_staged_communicator(
    std::unique_ptr<AsynchronousCommunicator> host, int cuda_device);
/// Makes the carrier for collectives of fp32 on GPU memory; see make_carrier().
std::unique_ptr<CollectiveCarrier> make_nccl_carrier(RankGroup& group, int cuda_device,
                                                     std::int64_t largest, bool in_place);
/// Returns a version such as "2.28.9", or an empty text in a build without NCCL.
std::string nccl_version();
}  // namespace scalemark
