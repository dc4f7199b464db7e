// Declares allreduce and allgather of host memory by MPI on a separate communicator. It is internal
// to comm/.
#pragma once

#include <cstdint>
#include <limits>

#include "comm/communicator.hpp"
#include "comm/operation_queues.hpp"
#include "comm/rank_group_impl.hpp"
#include "comm/wire_sum.hpp"

namespace scalemark {

/// A communicator for buffers in host memory.
class MpiCommunicator : public AsynchronousCommunicator {
 public:
  /// Makes the communicator; the call is collective. `largest_count` is the number of elements of
  /// one MPI call; larger buffers are sent in several (MPI counts are int).
  explicit MpiCommunicator(RankGroup& group, WireDtype wire = WireDtype::fp32,
                           std::size_t largest_count = std::numeric_limits<int>::max());
  ~MpiCommunicator() override;

  std::string algorithm() const override;
  std::string transport() const override;
  std::int64_t wire_bytes(std::int64_t bytes) const override;
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override;
  std::unique_ptr<Pending> start_last_allreduce(const Buffer& buffer, Stream stream) override;
  std::unique_ptr<Pending> start_urgent_allreduce(const Buffer& buffer, int urgency,
                                                  Stream stream) override;
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream stream) override;
  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream stream) override;
  /// Sums on this thread, without waking another.
  void allreduce(const Buffer& buffer, Stream stream = nullptr) override;

 private:
  struct Handles;
  bool is_rounded(const Buffer& buffer) const;  ///< it travels in a 2-byte type
  std::unique_ptr<Pending> start(const Buffer& buffer, MpiWorld::Poster poster);
  Operation::Post sum_of(const Buffer& buffer, MPI_Comm on) const;
  std::size_t elements_of_piece(std::size_t bytes, std::size_t bytes_of_element) const;
  std::size_t elements_of_block_piece(std::size_t bytes_of_element) const;
  std::vector<std::vector<Operation::Post>> wire_sums(const Buffer& buffer, std::size_t bytes);
  const HalfLoops* wire_loops() const;  ///< null: fp32
  int next_tag();

  std::shared_ptr<RankGroup::Impl> group_;
  std::size_t largest_count_;
  int sums_started_ = 0;
  std::shared_ptr<const Handles> handles_;
  std::shared_ptr<UrgentQueue> urgent_;
  std::shared_ptr<PieceQueue> pieces_;
};

}  // namespace scalemark
