// Internal to comm/: allreduce of host memory by MPI, on a communicator of its own.
#pragma once

#include <cstdint>
#include <limits>

#include "comm/communicator.hpp"
#include "comm/rank_group_impl.hpp"

namespace scalemark {

class MpiCommunicator : public Communicator {
 public:
  /// Collective. `largest_count`: elements of one MPI call; larger buffers go in several (MPI
  /// counts are int).
  explicit MpiCommunicator(RankGroup& group,
                           std::size_t largest_count = std::numeric_limits<int>::max());
  ~MpiCommunicator() override;

  std::string_view name() const override { return "mpi"; }
  int size() const override { return group_->size; }
  std::string algorithm() const override;
  std::string transport() const override;
  std::int64_t wire_bytes(std::int64_t bytes) const override;
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override;

 private:
  /// What an operation needs on the MPI thread, by value: the communicator may be gone by then.
  struct Handles {
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Op sum_bf16 = MPI_OP_NULL, sum_f16 = MPI_OP_NULL;
    std::size_t largest_count = 0;

    std::vector<MPI_Request> start(const Buffer& buffer) const;
  };

  std::shared_ptr<RankGroup::Impl> group_;
  Handles handles_;
};

}  // namespace scalemark
