// Moves buffers (pointer, count, dtype, stream) of data between ranks. A communicator is made from
// a RankGroup. LibTorch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/rank_group.hpp"
#include "config/run_config.hpp"

namespace scalemark {

enum class DataType { f64, f32, bf16, f16, i64, i32, u8 };
std::size_t size_of(DataType type);  ///< bytes
std::string_view to_string(DataType type);

/// A device stream: an opaque cudaStream_t for nccl, null on the CPU.
using Stream = void*;

/// A contiguous buffer. The memory must stay valid until the operation is complete.
struct Buffer {
  void* data;
  std::size_t count;  ///< elements
  DataType type;

  std::size_t bytes() const { return count * size_of(type); }
};

/// The course of an operation, in seconds since a moment that all operations of a step share.
struct OperationTimes {
  double posted = 0;                    ///< when its data was ready, so that it could run
  double done = 0;                      ///< complete
  double wait_begin = 0, wait_end = 0;  ///< when nothing was computed because it was missing
};

/// A started operation.
class Pending {
 public:
  virtual ~Pending() = default;
  /// On the CPU, sleeps until the operation is complete, under the watchdog's deadline. With CUDA,
  /// makes the stream that was given at the start wait.
  virtual void wait() = 0;
  /// On the CPU, returns whether wait() would return at once.
  virtual bool is_complete() const { return false; }
  /// Returns the times of the operation after wait(), or nullopt as long as they are not known. On
  /// the CPU they are known at once, by the clock of the host. With CUDA they come from events,
  /// once the stream has passed them; the call does not wait for that. Throws CommError where the
  /// device has failed.
  virtual std::optional<OperationTimes> times() = 0;
};

/// Returns an operation that is already complete: nothing was sent, or it ran before it was
/// returned.
std::unique_ptr<Pending> completed_operation();

/// The properties of a communicator that never change.
struct CommunicatorTraits {
  std::string_view name;  ///< in --communicator; c10d has "gloo"
  int size = 1;           ///< number of ranks
  /// The type in which f32 buffers are sent. With a 2-byte type, every rank's values are rounded to
  /// it once (to nearest, ties to even), summed in fp32 in rank order, and the sum is rounded once;
  /// all ranks get the same bits. Nothing is scaled: in fp16, values that round beyond 65504 become
  /// infinite, which a check for non-finite values then finds, and values below 2^-25 (3e-8) become
  /// zero. Buffers of other types are sent unchanged.
  WireDtype wire_dtype = WireDtype::fp32;
  /// False where no data is moved and buffers are left unchanged. Such a communicator serves
  /// training without communication, the baseline of a scaling curve.
  bool moves_data = true;
};

/// Sums buffers over the ranks of a group. All ranks must make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  std::string_view name() const { return traits_.name; }
  int size() const { return traits_.size; }
  WireDtype wire_dtype() const { return traits_.wire_dtype; }
  bool moves_data() const { return traits_.moves_data; }
  /// Where these ranks are one group of --shard_ranks: the communicator of this rank and those that
  /// have its place in the other groups, else null.
  Communicator* replicas() const { return replicas_.get(); }
  void set_replicas(std::unique_ptr<Communicator> replicas) { replicas_ = std::move(replicas); }
  /// Returns the bytes of `buffer` as it is sent.
  std::int64_t payload_bytes(const Buffer& buffer) const;

  virtual std::string algorithm()
      const = 0;  ///< algorithm of the allreduce, as stated in the record
  virtual std::string transport() const = 0;  ///< what carries the bytes; empty where unknown
  /// Returns the bytes that each rank sends for an allreduce of f32 values by the stated algorithm,
  /// averaged over ranks and rounded up. `bytes` is the size of these values as they are sent,
  /// payload_bytes().
  virtual std::int64_t wire_bytes(std::int64_t bytes) const = 0;
  /// Starts an in-place sum over ranks. Ranks must start operations in the same order. f32 is sent
  /// in the type of wire_dtype(); bf16 and f16 are summed in fp32 and rounded at every hop of the
  /// algorithm (docs/measurements.md). Until the operation is complete, the content of the buffer
  /// is undefined. The operation waits for work that is already queued on `stream`.
  virtual std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) = 0;
  /// Sums over ranks in place and waits for the result.
  virtual void allreduce(const Buffer& buffer, Stream stream = nullptr) {
    start_allreduce(buffer, stream)->wait();
  }

 protected:
  explicit Communicator(const CommunicatorTraits& traits) : traits_(traits) {}

 private:
  CommunicatorTraits traits_;
  std::unique_ptr<Communicator> replicas_;
};

/// A communicator whose operations run beside the computation, so that their order and their times
/// matter. It also gathers. `none` and those of c10d are not of this kind.
class AsynchronousCommunicator : public Communicator {
 public:
  /// Marks the moment on `stream` from which the OperationTimes of the following operations count,
  /// where they come from the device. It is called before the first operation of a step.
  virtual void begin_step(Stream) {}
  /// Starts an in-place sum over ranks whose caller waits next, so that it need not progress by
  /// itself until then.
  virtual std::unique_ptr<Pending> start_last_allreduce(const Buffer& buffer, Stream stream) {
    return start_allreduce(buffer, stream);
  }
  /// Starts an in-place sum over ranks in pieces. Pieces of the least `urgency` go first, also
  /// before pieces of sums that were started earlier. The urgencies must be the same on all ranks.
  /// A communicator that supports no other order keeps the order of the starts.
  virtual std::unique_ptr<Pending> start_urgent_allreduce(const Buffer& buffer, int /*urgency*/,
                                                          Stream stream) {
    return start_allreduce(buffer, stream);
  }
  /// Starts a sum over ranks of which each rank gets one block: `all` holds size() blocks of
  /// `mine.count` elements, and `mine` gets the sums of block rank(). Both are f32 and must not
  /// overlap. The content of `all` is undefined afterwards. The sums have the bits that
  /// start_allreduce() gives with a 2-byte wire_dtype(); else fp32 values are summed in rank order
  /// (mpi) or as NCCL sums them.
  virtual std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                        Stream stream) = 0;
  /// Starts gathering a block of every rank at all ranks. `all` gets the blocks contiguously in
  /// rank order, that of rank r with `counts[r]` elements. `mine` is this rank's block and either
  /// lies at its place in `all` or does not overlap it. Ranks must pass the same counts, and start
  /// operations in the same order. Elements are sent unchanged, whatever wire_dtype() is.
  virtual std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                                   const std::vector<std::size_t>& counts,
                                                   Stream stream) = 0;

 protected:
  using Communicator::Communicator;
};

/// Returns the operations that only an asynchronous communicator has. Throws CommError where
/// `communicator` is not one.
AsynchronousCommunicator& asynchronous(Communicator& communicator);

/// Makes a communicator. `kind` must be resolved (not automatic). With `cuda_device` < 0, buffers
/// are in host memory. mpi with a CUDA device stages through pinned host memory, which its
/// transport() states. A 2-byte `wire` has an effect with mpi only; none and a single rank ignore
/// it. The call is collective. Throws EnvironmentError where the communicator is not available in
/// this build or machine.
std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, RankGroup& group,
                                                int cuda_device, WireDtype wire = WireDtype::fp32);

/// Makes the communicator of this rank's group of `ranks` consecutive ones, with replicas(), for
/// ranks_of_shards(). Where that is one rank or all, or `kind` is none: make_communicator().
/// `ranks` must divide the size of `group`, all of whose ranks make the call.
std::unique_ptr<Communicator> make_shard_communicator(CommunicatorKind kind, RankGroup& group,
                                                      int cuda_device, WireDtype wire, int ranks);

/// Resolves auto: nccl on cuda, mpi on cpu, none for one rank.
CommunicatorKind resolve_communicator(CommunicatorKind kind, bool cuda, int world_size);

}  // namespace scalemark
