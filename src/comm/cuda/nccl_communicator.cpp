// Allreduce and allgather of GPU memory by NCCL on a stream of its own, so that it runs beside the
// computation.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "comm/cuda/check.hpp"
#include "comm/cuda/nccl_watch.hpp"
#include "comm/nccl_factory.hpp"
#include "comm/nccl_log.hpp"
#include "measure/bus_bandwidth.hpp"

namespace scalemark {
namespace {

/// Made before the first call of NCCL.
const NcclLog& nccl_log() {
  static const NcclLog log;
  return log;
}

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::f64:
      return ncclFloat64;
    case DataType::f32:
      return ncclFloat32;
    case DataType::bf16:
      return ncclBfloat16;
    case DataType::f16:
      return ncclFloat16;
    case DataType::i64:
      return ncclInt64;
    case DataType::i32:
      return ncclInt32;
    case DataType::u8:
      return ncclUint8;
  }
  throw CommError("an NCCL operation on an unknown data type");
}

/// Makes the stream that was given at the start wait for the result.
class NcclPending : public Pending {
 public:
  NcclPending(std::shared_ptr<CudaEvent> done, cudaStream_t stream)
      : done_(std::move(done)), stream_(stream) {}
  void wait() override {
    check_cuda(cudaStreamWaitEvent(stream_, *done_, 0), "cudaStreamWaitEvent");
  }

 private:
  std::shared_ptr<CudaEvent> done_;
  cudaStream_t stream_;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(RankGroup& group, int cuda_device)
      : size_(group.size()), device_(cuda_device), logged_(nccl_log().text().size()) {
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    int low = 0, high = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, high),
               "cudaStreamCreateWithPriority");
    try {
      connect(group);
    } catch (...) {
      if (communicator_) ncclCommAbort(communicator_);
      cudaStreamDestroy(stream_);
      throw;
    }
    watch_ = std::make_unique<NcclWatch>(communicator_, device_, group.watchdog());
  }

  ~NcclCommunicator() override {
    cudaStreamSynchronize(stream_);
    watch_.reset();
    if (ncclCommFinalize(communicator_) == ncclInProgress) settle();
    ncclCommDestroy(communicator_);
    cudaStreamDestroy(stream_);
  }

  std::string_view name() const override { return "nccl"; }
  int size() const override { return size_; }
  std::string algorithm() const override { return "chosen by NCCL (wire bytes as of a ring)"; }
  /// Of this rank's channels, once they are connected.
  std::string transport() const override { return nccl_transport(nccl_log().text(logged_)); }
  std::int64_t wire_bytes(std::int64_t bytes) const override {
    return ring_allreduce_bytes(bytes, size_);
  }

  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    return start(stream, "ncclAllReduce", [&] {
      return ncclAllReduce(buffer.data, buffer.data, buffer.count, nccl_type(buffer.type), ncclSum,
                           communicator_, stream_);
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
      return ncclAllGather(mine.data, all.data, mine.count, nccl_type(mine.type), communicator_,
                           stream_);
    });
  }

 private:
  /// `post` queues an operation on the own stream, behind what `stream` holds now.
  template <typename F>
  std::unique_ptr<Pending> start(Stream stream, const char* call, F post) {
    const auto compute = static_cast<cudaStream_t>(stream);
    const auto ready = next_event(), done = next_event();
    check_cuda(cudaEventRecord(*ready, compute), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream_, *ready, 0), "cudaStreamWaitEvent");
    const ncclResult_t started = post();
    check_nccl(started, call);
    if (started == ncclInProgress) settle();
    check_cuda(cudaEventRecord(*done, stream_), "cudaEventRecord");
    watch_->add(done);
    return std::make_unique<NcclPending>(done, compute);
  }

  /// ncclAllGather takes equal blocks only; in one group, broadcasts of the ranks are one
  /// operation.
  ncclResult_t broadcast_blocks(const Buffer& mine, const Buffer& all,
                                const std::vector<std::size_t>& counts) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    auto* block = static_cast<char*>(all.data);
    ncclResult_t queued = ncclSuccess;
    for (int root = 0; root < size_; ++root) {
      const std::size_t count = counts[static_cast<std::size_t>(root)];
      const ncclResult_t result = ncclBroadcast(mine.data, block, count, nccl_type(mine.type), root,
                                                communicator_, stream_);
      if (result != ncclSuccess && result != ncclInProgress) queued = result;
      block += count * size_of(mine.type);
    }
    const ncclResult_t ended = ncclGroupEnd();  // also after an error: the group must be closed
    return queued != ncclSuccess ? queued : ended;
  }

  /// Nonblocking, so that a peer that never comes is met by the watchdog and not inside NCCL.
  void connect(RankGroup& group) {
    const PhaseScope phase(group.watchdog(), "nccl start-up");
    std::string id(sizeof(ncclUniqueId), '\0');
    group.agree_on([&] {
      ncclUniqueId own;
      if (group.rank() == 0) check_nccl(ncclGetUniqueId(&own), "ncclGetUniqueId");
      if (group.rank() == 0) std::memcpy(id.data(), &own, sizeof own);
    });
    id = group.broadcast(id);
    ncclUniqueId unique;
    std::memcpy(&unique, id.data(), sizeof unique);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    group.agree_on([&] {
      check_nccl(ncclCommInitRankConfig(&communicator_, size_, unique, group.rank(), &config),
                 "ncclCommInitRankConfig");
      settle();
    });
  }

  /// Sleeps until a nonblocking call of the communicator is through.
  void settle() {
    ncclResult_t state = ncclInProgress;
    while (true) {
      check_nccl(ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError");
      if (state != ncclInProgress) break;
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
    if (state != ncclSuccess)
      throw CommError(
          fmt::format("NCCL: {} ({})", ncclGetErrorString(state), ncclGetLastError(communicator_)));
  }

  /// An event that nobody holds any more, or a new one: a step needs the same few again and again.
  std::shared_ptr<CudaEvent> next_event() {
    const auto free = std::find_if(events_.begin(), events_.end(),
                                   [](const auto& event) { return event.use_count() == 1; });
    if (free != events_.end()) return *free;
    events_.push_back(std::make_shared<CudaEvent>());
    return events_.back();
  }

  int size_;
  int device_;
  std::size_t logged_;  ///< bytes of NCCL's log that other communicators wrote
  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
  std::vector<std::shared_ptr<CudaEvent>> events_;
  std::unique_ptr<NcclWatch> watch_;
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
