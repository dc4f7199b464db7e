// Sums the gradients of all ranks, bucket by bucket in gradient-ready order. It has two methods,
// add and finalize, as in flashlight. LibTorch-free: it sees buckets as buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communication_log.hpp"
#include "comm/communicator.hpp"

namespace scalemark {

/// Starts the allreduce of each bucket when it is full and waits for the sums.
class GradientReducer {
 public:
  /// `buckets[i]` is the i-th bucket in gradient-ready order; `parameters_in[i]` is the number of
  /// add() calls that fill it. With Overlap::none, all buckets start in finalize(). With
  /// Overlap::backward, a bucket starts when it is full and all buckets before it have started.
  /// Overlap::step does the same, but the buckets of the least `urgency` (one number for each
  /// bucket) overtake the others. A buffer without elements stands for a bucket whose data is sent
  /// in another way: it is counted as full like the others, and nothing is sent for it.
  GradientReducer(Communicator& communicator, std::vector<Buffer> buckets,
                  std::vector<int> parameters_in, Overlap overlap, std::vector<int> urgency = {});

  /// Marks buckets that carry gradients of embedding tables, for log().
  void set_of_table(std::vector<bool> of_table) { of_table_ = std::move(of_table); }

  /// Begins a step, before its first gradient is computed on `stream`.
  void begin_step(Stream stream);
  /// Reports that a parameter of `bucket` has its gradient in the buffer. `stream` is where that
  /// gradient is computed.
  void add(int bucket, Stream stream);
  /// Starts what has not started, waits for all, and prepares the next step. `on_sum(i)` is called
  /// as soon as bucket i and those before it are summed, while the others are still in flight.
  /// Throws CommError naming a bucket that is not full, unless no data is moved.
  void finalize(Stream stream, const std::function<void(std::size_t bucket)>& on_sum = {});
  /// Replaces finalize() together with end_step(): both are called after the last gradient, and
  /// wait() is called for each bucket before its next add(), which may be in the next step. wait()
  /// returns at once where the sum has already been waited for.
  void start_rest(Stream stream);
  void wait(std::size_t bucket);
  /// Returns whether wait() would return at once; on the CPU.
  bool is_complete(std::size_t bucket) const;
  void end_step();

  /// Returns the log of what the buckets cost. Operations that a step waits for in on_sum() may be
  /// added to it.
  CommunicationLog& log() { return log_; }
  std::int64_t bytes_per_step() const;  ///< payload per rank, as it travels
  std::int64_t wire_bytes_per_step() const;
  std::int64_t messages_per_step() const;

 private:
  Communicator& communicator_;
  AsynchronousCommunicator* asynchronous_;  ///< the same; null: it is not of that kind
  std::vector<Buffer> buckets_;
  std::vector<int> parameters_in_;
  Overlap overlap_;
  std::vector<int> urgency_;
  std::vector<int> missing_;
  std::vector<std::unique_ptr<Pending>> pending_;  ///< by bucket; null: not in flight
  std::size_t next_ = 0;                           ///< the first bucket that has not started
  std::vector<bool> of_table_;
  CommunicationLog log_;

  void check_full() const;
  void start_next(Stream stream);
};

/// Runs the untimed data check: fills every bucket with rank-dependent values (small integers,
/// exact in every dtype), reduces through the same communicator and compares every element with the
/// closed form. The content of the buckets is overwritten. Buffers are in host memory; for a
/// communicator of CUDA buffers, pass one that copies between them (train/data_check.cpp).
/// `corrupt` flips one element of this rank's result first (--inject corrupt_allreduce). Throws
/// CommError naming bucket, element, expected and found value.
void check_allreduce(Communicator& communicator, const std::vector<Buffer>& host_buckets, int rank,
                     bool corrupt);

/// Runs the data check of a reduce-scatter, whose buffers are those of start_reduce_scatter(), and
/// of the allreduce of what it brings over replicas(). `rank` counts over all groups.
void check_reduce_scatter(Communicator& communicator, const Buffer& all, const Buffer& mine,
                          int rank, bool corrupt);

/// Runs the data check of an allgather. `all` gets the blocks of all ranks, which may differ in
/// length. `rank` counts over all groups of --shard_ranks. Of this and the one above, buffers are
/// in host memory, or in memory that `communicator` stages, and where no data is moved, the check
/// passes.
void check_allgather(Communicator& communicator, const Buffer& mine, const Buffer& all,
                     const std::vector<std::size_t>& counts, int rank, bool corrupt);

}  // namespace scalemark
