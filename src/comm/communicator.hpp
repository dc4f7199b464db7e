// Data between ranks: moves buffers (pointer, count, dtype, stream). Made from a RankGroup.
// LibTorch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rank_group.hpp"
#include "config/run_config.hpp"

namespace scalemark {

enum class DataType { f64, f32, bf16, f16, i64, i32, u8 };
std::size_t size_of(DataType type);  ///< bytes
std::string_view to_string(DataType type);

/// A device stream; opaque (cudaStream_t for nccl), null on the CPU.
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
  double posted = 0;                    ///< its data was there: from here on it could run
  double done = 0;                      ///< complete
  double wait_begin = 0, wait_end = 0;  ///< in which nothing was computed for want of it
};

/// A started operation.
class Pending {
 public:
  virtual ~Pending() = default;
  /// CPU: sleeps until complete, under the watchdog's deadline. CUDA: makes the stream that was
  /// given at the start wait.
  virtual void wait() = 0;
  /// CPU: whether wait() would return at once.
  virtual bool is_complete() const { return false; }
  /// After wait(); nullopt as long as they are not known. CPU: at once, by the host's clock. CUDA:
  /// by events, once the stream has passed them; nobody waits for that. Throws CommError where the
  /// device has failed.
  virtual std::optional<OperationTimes> times() = 0;
};

/// One that is complete already: nothing was sent, or it ran before it was handed out.
std::unique_ptr<Pending> completed_operation();

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string_view name() const = 0;  ///< its word in --communicator; c10d has "gloo"
  /// False: what a rank has stays its own, and buffers are left as they are. Training without
  /// communication, the baseline of a scaling curve.
  virtual bool moves_data() const { return true; }
  virtual int size() const = 0;
  virtual std::string algorithm() const = 0;  ///< of the allreduce, as stated in the record
  virtual std::string transport() const = 0;  ///< what carries the bytes; empty where unknown
  /// What f32 buffers travel as. With a 2-byte type, every rank's values are rounded to it once
  /// (to nearest, ties to even), summed in fp32 in rank order and the sum rounded once; all ranks
  /// get the same bits. Nothing is scaled: in fp16 what rounds beyond 65504 becomes infinite, which
  /// a check for non-finite values then finds, and what is below 2^-25 (3e-8) zero. Buffers of
  /// other types travel as they are.
  virtual WireDtype wire_dtype() const { return WireDtype::fp32; }
  /// Bytes that each rank sends for an allreduce of f32 values by the stated algorithm, mean over
  /// ranks, rounded up. `bytes`: of these values as they travel, payload_bytes().
  virtual std::int64_t wire_bytes(std::int64_t bytes) const = 0;
  /// Bytes of `buffer` as it travels.
  std::int64_t payload_bytes(const Buffer& buffer) const;
  /// Starts an in-place sum over ranks. Ranks must start operations in the same order.
  /// f32 travels as wire_dtype() says; bf16 and f16 are summed in fp32 and rounded at every hop of
  /// the algorithm (docs/measurements.md). Until it is complete, an operation may leave anything in
  /// the buffer. `stream`: the operation waits for work already queued there.
  virtual std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) = 0;
  /// The same by a caller that waits next: nothing needs to go on by itself until then.
  virtual std::unique_ptr<Pending> start_last_allreduce(const Buffer& buffer, Stream stream) {
    return start_allreduce(buffer, stream);
  }
  /// The same in pieces, of which those of the least `urgency` go first, also before pieces of sums
  /// that were started earlier: with the same urgencies on all ranks. A communicator that knows no
  /// order but that of the starts keeps to it.
  virtual std::unique_ptr<Pending> start_urgent_allreduce(const Buffer& buffer, int /*urgency*/,
                                                          Stream stream) {
    return start_allreduce(buffer, stream);
  }
  /// Starts gathering a block of every rank at all ranks: `all` gets the blocks one behind the
  /// other in rank order, that of rank r with `counts[r]` elements; `mine` is this rank's and must
  /// not overlap `all`. Ranks give the same counts, and start operations in the same order.
  /// Elements travel as they are, whatever wire_dtype() is. Throws CommError where a communicator
  /// has none.
  virtual std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                                   const std::vector<std::size_t>& counts,
                                                   Stream stream);
  /// The moment on `stream` from which OperationTimes of what is started from here on count; where
  /// they come from the device. Before the first operation of a step.
  virtual void begin_step(Stream) {}
  /// Blocking convenience.
  virtual void allreduce(const Buffer& buffer, Stream stream = nullptr) {
    start_last_allreduce(buffer, stream)->wait();
  }
};

/// `kind` must be resolved (not automatic); `cuda_device` < 0: buffers are in host memory. mpi with
/// a CUDA device stages through pinned host memory, which its transport() says. Collective. Throws
/// EnvironmentError where it is not available in this build or machine; a 2-byte `wire` is for mpi
/// only, and none as well as one rank have no use for it.
std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, RankGroup& group,
                                                int cuda_device, WireDtype wire = WireDtype::fp32);

/// auto -> nccl on cuda, mpi on cpu, none for one rank.
CommunicatorKind resolve_communicator(CommunicatorKind kind, bool cuda, int world_size);

}  // namespace scalemark
