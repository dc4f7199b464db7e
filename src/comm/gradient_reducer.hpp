// Sums the gradients of all ranks, bucket by bucket in gradient-ready order. Two methods, add and
// finalize (flashlight's shape). LibTorch-free: it sees buckets as buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communication_log.hpp"
#include "comm/communicator.hpp"

namespace scalemark {

class GradientReducer {
 public:
  /// `buckets[i]` is the i-th bucket in gradient-ready order; `parameters_in[i]` how many ready()
  /// calls fill it. Overlap::none: all buckets start in finalize(). Overlap::backward: a bucket
  /// starts when it is full and all buckets before it have started; Overlap::step: the same, but
  /// those of the least `urgency` (one per bucket) overtake the others. A buffer of no elements
  /// stands for a bucket that travels some other way: it is counted as full like the others, and
  /// nothing is sent for it.
  GradientReducer(Communicator& communicator, std::vector<Buffer> buckets,
                  std::vector<int> parameters_in, Overlap overlap, std::vector<int> urgency = {});

  /// Marks buckets that carry gradients of embedding tables, for log().
  void set_of_table(std::vector<bool> of_table) { of_table_ = std::move(of_table); }

  /// Before the first gradient of a step is computed on `stream`.
  void begin_step(Stream stream) { communicator_.begin_step(stream); }
  /// A parameter of `bucket` has its gradient in the buffer. `stream`: where that gradient is
  /// computed.
  void add(int bucket, Stream stream);
  /// Starts what has not started, waits for all, makes ready for the next step. `on_sum(i)` is
  /// called as soon as bucket i and those before it are summed, while the others are still on their
  /// way. A bucket that is not full is an error (CommError naming it) unless nothing moves.
  void finalize(Stream stream, const std::function<void(std::size_t bucket)>& on_sum = {});
  /// In place of finalize(): start_rest() and end_step() after the last gradient, and wait() for
  /// each bucket before its next add(), which may be in the next step. wait() returns at once where
  /// the sum has been waited for.
  void start_rest(Stream stream);
  void wait(std::size_t bucket);
  /// Whether wait() would return at once; on the CPU.
  bool is_complete(std::size_t bucket) const;
  void end_step();

  /// What the buckets cost; operations that a step waits for in on_sum() may be added.
  CommunicationLog& log() { return log_; }
  std::int64_t bytes_per_step() const;  ///< payload per rank, as it travels
  std::int64_t wire_bytes_per_step() const;
  std::int64_t messages_per_step() const;

 private:
  Communicator& communicator_;
  std::vector<Buffer> buckets_;
  std::vector<int> parameters_in_;
  Overlap overlap_;
  std::vector<int> urgency_;
  std::vector<int> missing_;
  std::vector<std::unique_ptr<Pending>> pending_;  ///< by bucket; null: not on its way
  std::size_t next_ = 0;                           ///< the first bucket that has not started
  std::vector<bool> of_table_;
  CommunicationLog log_;

  void check_full() const;
  void start_next(Stream stream);
};

/// The untimed data check: fills every bucket with rank-dependent values (small integers, exact in
/// every dtype), reduces through the same communicator and compares every element with the closed
/// form. Contents are overwritten. Buffers in host memory; a communicator of CUDA buffers is given
/// one that copies between them (train/data_check.cpp). Throws CommError naming bucket, element,
/// expected and found value. `corrupt`: flips one element of this rank's result first (--inject
/// corrupt_allreduce).
void check_allreduce(Communicator& communicator, const std::vector<Buffer>& host_buckets, int rank,
                     bool corrupt);

/// The same check of an allgather: `all` gets the blocks of all ranks, which may differ in length.
/// Host memory, or what `communicator` stages. Where nothing moves it passes.
void check_allgather(Communicator& communicator, const Buffer& mine, const Buffer& all,
                     const std::vector<std::size_t>& counts, int rank, bool corrupt);

}  // namespace scalemark
