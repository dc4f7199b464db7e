// Implements an allreduce of fp32 values that are sent in a 2-byte type and summed in fp32. An
// MPI_SUM of 2-byte values would round at every hop; here a value is rounded once before it is
// sent, and its sum once more. Internal to comm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/half.hpp"
#include "comm/mpi.hpp"
#include "comm/operations.hpp"

namespace scalemark {

/// The ranks among which a sum runs.
struct Peers {
  std::shared_ptr<const void> owner;  ///< the owner of the communicator
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
};

/// Elements [first, last) of a shard: `count` elements over `ranks` ranks. The first shards are
/// longer by one where it does not divide.
struct Shard {
  std::size_t first, last;
  std::size_t count() const { return last - first; }
};
Shard shard_of(std::size_t count, int ranks, int rank);

/// One allreduce, in place, in three stages. Every rank sends each peer its shard, sums its own one
/// over all ranks, and sends the sum to all: n - s elements and then (P - 1) s for a shard of s,
/// which is 2 (P - 1) / P x n on average over the ranks.
///
/// A rank's own contribution is rounded to the 2-byte type as well. So the result does not depend
/// on which rank sums an element: dividing the values into other buckets gives the same bits. And
/// the 4 n bytes of the values can hold both wire buffers: after rounding, the first 2 n bytes hold
/// what is sent, the others what is received. No other memory is needed.
class WireSum {
 public:
  /// `tag` and `tag` + 1 must be used by no other operation in flight, since peers may reach the
  /// stages of several operations in different orders.
  WireSum(Peers peers, const HalfLoops& loops, float* values, std::size_t count, int tag);
  /// Returns the stages of one WireSum, which share it.
  static std::vector<Operation::Post> stages(WireSum sum);

 private:
  std::vector<MPI_Request> scatter();
  std::vector<MPI_Request> sum_and_gather();
  void widen();
  Shard shard(int rank) const { return shard_of(count_, peers_.size, rank); }
  /// Returns where the values of `rank` for this rank's shard are stored.
  std::uint16_t* contribution(int rank);

  Peers peers_;
  HalfLoops loops_;
  float* values_;
  std::size_t count_;
  int tag_;
  std::uint16_t* wire_;      ///< [count_]: what is sent, then the sums
  std::uint16_t* received_;  ///< [P - 1][own shard], in rank order
  std::vector<std::uint16_t>
      small_;  ///< received_ where the last shards are too short to make room
};

}  // namespace scalemark
