// Runs allreduce, reduce-scatter and allgather of GPU memory by NCCL on a separate stream, so that
// they overlap with the computation.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "comm/cuda/nccl_connection.hpp"
#include "comm/cuda/operation_events.hpp"
#include "comm/nccl_factory.hpp"
#include "measure/bus_bandwidth.hpp"

namespace scalemark {
namespace {

/// An operation whose wait() makes the stream that was given at the start wait for the result.
class NcclPending : public Pending {
 public:
  /// `recorded`: into a CUDA graph. Nobody can ask for its times, since its events pass anew in
  /// every repetition.
  NcclPending(EventPool& pool, OperationEvents events, cudaStream_t stream, bool recorded)
      : pool_(pool), events_(std::move(events)), stream_(stream), recorded_(recorded) {}
  void wait() override {
    events_.wait_begin = pool_.record(stream_);
    check_cuda(cudaStreamWaitEvent(stream_, *events_.done, 0), "cudaStreamWaitEvent");
    events_.wait_end = pool_.record(stream_);
  }
  std::optional<OperationTimes> times() override {
    return recorded_ ? OperationTimes{} : events_.times();
  }

 private:
  EventPool& pool_;
  OperationEvents events_;
  cudaStream_t stream_;
  bool recorded_;
};

bool is_recorded(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

class NcclCommunicator : public AsynchronousCommunicator {
 public:
  NcclCommunicator(RankGroup& group, int cuda_device)
      : AsynchronousCommunicator({.name = "nccl", .size = group.size()}),
        logged_(nccl_log().text().size()),
        connection_(group, cuda_device) {}

  std::string algorithm() const override { return "chosen by NCCL (wire bytes as of a ring)"; }
  /// Returns the transport of this rank's channels, once they are connected.
  std::string transport() const override { return nccl_transport(nccl_log().text(logged_)); }
  std::int64_t wire_bytes(std::int64_t bytes) const override {
    return ring_allreduce_bytes(bytes, size());
  }

  void begin_step(Stream stream) override {
    origin_ = events_.record(static_cast<cudaStream_t>(stream));
  }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    return start(stream, "ncclAllReduce", [&] {
      return ncclAllReduce(buffer.data, buffer.data, buffer.count, nccl_type(buffer.type), ncclSum,
                           connection_.communicator(), connection_.stream());
    });
  }

  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream stream) override {
    return start(stream, "ncclReduceScatter", [&] {
      return ncclReduceScatter(all.data, mine.data, mine.count, nccl_type(mine.type), ncclSum,
                               connection_.communicator(), connection_.stream());
    });
  }

  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream stream) override {
    const bool equal =
        std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
    if (!equal)
      return start(stream, "ncclBroadcast", [&] { return broadcast_blocks(mine, all, counts); });
    return start(stream, "ncclAllGather", [&] {
      return ncclAllGather(mine.data, all.data, mine.count, nccl_type(mine.type),
                           connection_.communicator(), connection_.stream());
    });
  }

 private:
  /// Queues an operation with `post` on the communicator's stream, after the work that `stream`
  /// holds now.
  template <typename F>
  std::unique_ptr<Pending> start(Stream stream, const char* call, F post) {
    const auto compute = static_cast<cudaStream_t>(stream);
    OperationEvents events{origin_, events_.record(compute), {}, {}, {}};
    check_cuda(cudaStreamWaitEvent(connection_.stream(), *events.posted, 0), "cudaStreamWaitEvent");
    check_nccl(post(), call);
    events.done = events_.record(connection_.stream());
    const bool recorded = is_recorded(compute);
    if (!recorded) connection_.watch().add(events.done);
    return std::make_unique<NcclPending>(events_, std::move(events), compute, recorded);
  }

  /// Gathers blocks of different lengths. ncclAllGather takes equal blocks only; broadcasts of all
  /// ranks in one group are one operation.
  ncclResult_t broadcast_blocks(const Buffer& mine, const Buffer& all,
                                const std::vector<std::size_t>& counts) {
    auto* block = static_cast<char*>(all.data);
    return post_grouped(size(), [&](int root) {
      const std::size_t count = counts[static_cast<std::size_t>(root)];
      char* const to = std::exchange(block, block + count * size_of(mine.type));
      return ncclBroadcast(mine.data, to, count, nccl_type(mine.type), root,
                           connection_.communicator(), connection_.stream());
    });
  }

  std::size_t logged_;  ///< bytes of NCCL's log that other communicators wrote
  EventPool events_;    ///< outlives what is in flight
  SharedEvent origin_;
  NcclConnection connection_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(RankGroup& group, int cuda_device) {
  return std::make_unique<NcclCommunicator>(group, cuda_device);
}

std::string nccl_version() {
  nccl_log();
  int code = 0;
  if (ncclGetVersion(&code) != ncclSuccess) return {};
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace scalemark
