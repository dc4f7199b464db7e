// Implements an allreduce of fp32 values that are sent in a 2-byte type and summed in fp32. An
// MPI_SUM of 2-byte values would round at every hop; here a value is rounded once before it is
// sent, and its sum once more. Also implements each half of a sum alone: reduce-scatter, with or
// without such a type, and allgather of any type. Internal to comm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
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
struct Block {
  std::size_t first, last;
  std::size_t count() const { return last - first; }
};
Block block_of(std::size_t count, int ranks, int rank);

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
  Block shard(int rank) const { return block_of(count_, peers_.size, rank); }
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

/// A part of a reduce-scatter, in two stages: every rank sends each peer its values, and sums its
/// own over all ranks, in rank order: (P - 1) x n elements for n of each block.
class ShardSum {
 public:
  struct Part {
    float* values;       ///< the first of this part's elements of rank 0's block
    std::size_t stride;  ///< elements from a block to the next one
    std::size_t count;   ///< elements of each block
    float* sum;          ///< [count] of this rank
  };
  /// `loops` of the 2-byte type that is sent; null: fp32. `tag` must be used by no other operation
  /// in flight.
  ShardSum(Peers peers, const HalfLoops* loops, const Part& part, int tag)
      : peers_(std::move(peers)), loops_(loops), part_(part), tag_(tag) {}
  static std::vector<Operation::Post> stages(ShardSum sum);

 private:
  std::vector<MPI_Request> scatter();
  void add_up();
  float* values_of(int rank) const {
    return part_.values + static_cast<std::size_t>(rank) * part_.stride;
  }
  /// Returns the rounded values of this rank's part of a block, in the first half of their own
  /// memory, and the place of those that `rank` sends, in the second half of its block.
  std::uint16_t* rounded(int rank) const {
    return reinterpret_cast<std::uint16_t*>(values_of(rank));
  }
  std::uint16_t* received_rounded(int rank) const { return rounded(rank) + part_.count; }
  /// Returns the place of the fp32 values that `rank` sends.
  float* received(int rank) const {
    return received_.get() +
           static_cast<std::size_t>(rank - (rank > peers_.rank ? 1 : 0)) * part_.count;
  }

  Peers peers_;
  const HalfLoops* loops_;
  Part part_;
  int tag_;
  std::unique_ptr<float[]> received_;  ///< fp32: [P - 1][count]
};

/// A part of an allgather: `most` elements from `first` on of every rank's block, as far as it has
/// them.
struct GatherPart {
  Buffer mine, all;
  std::vector<std::size_t> counts;  ///< of each rank's block
  std::size_t first, most;
};
/// Returns its only stage: every rank sends its elements to all others. `tag` must be used by no
/// other operation in flight.
Operation::Post gather_part(Peers peers, GatherPart part, int tag);

}  // namespace scalemark
