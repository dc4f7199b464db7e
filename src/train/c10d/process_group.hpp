// Wraps a c10d process group of a RankGroup's ranks as a Communicator. Internal to train/.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "comm/communicator.hpp"

namespace scalemark {

using C10dTimeout = std::chrono::milliseconds;

class ProcessGroupCommunicator : public Communicator {
 public:
  /// Connects the ranks; see make_c10d_communicator().
  ProcessGroupCommunicator(RankGroup& group, int cuda_device);
  ~ProcessGroupCommunicator() override;

  /// Returns Gloo's default algorithm, which is a ring in segments for any size of the buffer.
  std::string algorithm() const override;
  std::string transport() const override { return cuda_device_ < 0 ? "tcp" : ""; }
  std::int64_t wire_bytes(std::int64_t bytes) const override;
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return process_group_; }

 private:
  int cuda_device_;
  c10::intrusive_ptr<c10d::ProcessGroup> process_group_;
};

/// Returns the IPv4 address under which the other ranks of the group reach this one, or this host's
/// name where there is none. Throws EnvironmentError where GLOO_SOCKET_IFNAME names no interface
/// with one.
std::string own_address(bool one_host);

/// Makes NCCL's backend. It is defined in train/cuda/, and in train/no_cuda/, where it throws
/// EnvironmentError.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size, int cuda_device,
                                                    C10dTimeout timeout);

}  // namespace scalemark
