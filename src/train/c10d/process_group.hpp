// Internal to train/: a c10d process group of a RankGroup's ranks, as a Communicator.
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
  /// See make_c10d_communicator().
  ProcessGroupCommunicator(RankGroup& group, int cuda_device);
  ~ProcessGroupCommunicator() override;

  std::string_view name() const override { return cuda_device_ < 0 ? "gloo" : "nccl"; }
  int size() const override { return process_group_->getSize(); }
  /// Gloo's default allreduce is a ring in segments, whatever the size of the buffer.
  std::string algorithm() const override;
  std::string transport() const override { return cuda_device_ < 0 ? "tcp" : ""; }
  std::int64_t wire_bytes(std::int64_t bytes) const override;
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return process_group_; }

 private:
  int cuda_device_;
  c10::intrusive_ptr<c10d::ProcessGroup> process_group_;
};

/// The IPv4 address under which the other ranks of the group reach this one; this host's name where
/// there is none. Throws EnvironmentError where GLOO_SOCKET_IFNAME names no interface with one.
std::string own_address(bool one_host);

/// Defined in train/cuda/, and in train/no_cuda/, where it throws EnvironmentError.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size, int cuda_device,
                                                    C10dTimeout timeout);

}  // namespace scalemark
