// Implements communication of CUDA buffers through a communicator of host memory: GPU -> pinned
// host memory -> sum, reduce-scatter or allgather -> GPU.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/cuda/operation_events.hpp"
#include "comm/cuda/runtime.hpp"
#include "comm/nccl_factory.hpp"

namespace scalemark {
namespace {

using HostOperation = std::function<std::unique_ptr<Pending>(void* sent, void* received)>;

/// An operation whose copy to the host runs beside the computation. The operation itself runs in
/// wait(), in the order of the calls, which is the same on all ranks.
class StagedPending : public Pending {
 public:
  /// `start` starts the operation on the pinned copies of `sent` and `received`, which may be the
  /// same.
  StagedPending(HostOperation start, const Buffer& sent, const Buffer& received,
                std::shared_ptr<PinnedMemory> staged_sent,
                std::shared_ptr<PinnedMemory> staged_received, EventPool& pool,
                const SharedEvent& origin, cudaStream_t compute, cudaStream_t copies)
      : start_(std::move(start)),
        received_(received),
        staged_sent_(std::move(staged_sent)),
        staged_received_(std::move(staged_received)),
        pool_(pool),
        events_{origin, pool.record(compute), {}, {}, {}},
        compute_(compute),
        copies_(copies) {
    check_cuda(cudaStreamWaitEvent(copies_, *events_.posted, 0), "cudaStreamWaitEvent");
    check_cuda(cudaMemcpyAsync(staged_sent_->data(), sent.data, sent.bytes(),
                               cudaMemcpyDeviceToHost, copies_),
               "cudaMemcpyAsync");
    copied_ = pool_.record(copies_);
  }
  ~StagedPending() override { cudaStreamSynchronize(copies_); }

  /// The host waits, but the stream first finishes the work that is queued; the wait of the stream
  /// begins after that.
  void wait() override {
    events_.wait_begin = pool_.record(compute_);
    check_cuda(cudaEventSynchronize(*copied_), "cudaEventSynchronize");
    start_(staged_sent_->data(), staged_received_->data())->wait();
    check_cuda(cudaMemcpyAsync(received_.data, staged_received_->data(), received_.bytes(),
                               cudaMemcpyHostToDevice, copies_),
               "cudaMemcpyAsync");
    events_.done = pool_.record(copies_);
    check_cuda(cudaStreamWaitEvent(compute_, *events_.done, 0), "cudaStreamWaitEvent");
    events_.wait_end = pool_.record(compute_);
  }
  std::optional<OperationTimes> times() override { return events_.times(); }

 private:
  HostOperation start_;
  Buffer received_;
  std::shared_ptr<PinnedMemory> staged_sent_, staged_received_;
  EventPool& pool_;
  OperationEvents events_;
  SharedEvent copied_;
  cudaStream_t compute_, copies_;
};

class HostStagedCommunicator : public AsynchronousCommunicator {
 public:
  HostStagedCommunicator(std::unique_ptr<AsynchronousCommunicator> host, int cuda_device)
      : AsynchronousCommunicator({host->name(), host->size(), host->wire_dtype()}),
        host_(std::move(host)) {
    check_cuda(cudaSetDevice(cuda_device), "cudaSetDevice");
    check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  }
  ~HostStagedCommunicator() override { cudaStreamDestroy(copies_); }

  std::string algorithm() const override { return host_->algorithm(); }
  std::string transport() const override {
    return host_->transport() + ", staged through pinned host memory";
  }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return host_->wire_bytes(bytes); }
  void begin_step(Stream stream) override {
    origin_ = events_.record(static_cast<cudaStream_t>(stream));
  }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    const auto sum = [this, buffer](void* data, void*) {
      return host_->start_allreduce({data, buffer.count, buffer.type}, nullptr);
    };
    const auto staged = memory(buffer.bytes());
    return std::make_unique<StagedPending>(sum, buffer, buffer, staged, staged, events_, origin_,
                                           static_cast<cudaStream_t>(stream), copies_);
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream stream) override {
    const auto sum = [this, all, mine](void* sent, void* received) {
      return host_->start_reduce_scatter({sent, all.count, all.type},
                                         {received, mine.count, mine.type}, nullptr);
    };
    const auto staged = memory(all.bytes());
    return std::make_unique<StagedPending>(sum, all, mine, staged, memory(mine.bytes()), events_,
                                           origin_, static_cast<cudaStream_t>(stream), copies_);
  }
  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream stream) override {
    const auto gather = [this, mine, all, counts](void* sent, void* received) {
      return host_->start_allgather({sent, mine.count, mine.type}, {received, all.count, all.type},
                                    counts, nullptr);
    };
    const auto staged = memory(mine.bytes());
    return std::make_unique<StagedPending>(gather, mine, all, staged, memory(all.bytes()), events_,
                                           origin_, static_cast<cudaStream_t>(stream), copies_);
  }

 private:
  /// Returns the smallest buffer that is large enough and that no operation holds any more, or a
  /// new one. Pinning is slow, and every step needs about the same sizes.
  std::shared_ptr<PinnedMemory> memory(std::size_t bytes) {
    const std::shared_ptr<PinnedMemory>* best = nullptr;
    for (const auto& one : memory_)
      if (one.use_count() == 1 && one->bytes() >= bytes &&
          (!best || one->bytes() < (*best)->bytes()))
        best = &one;
    if (best) return *best;
    memory_.push_back(std::make_shared<PinnedMemory>(bytes));
    return memory_.back();
  }

  std::unique_ptr<AsynchronousCommunicator> host_;
  std::vector<std::shared_ptr<PinnedMemory>> memory_;
  EventPool events_;
  SharedEvent origin_;
  cudaStream_t copies_ = nullptr;
};

}  // namespace

std::unique_ptr<Communicator> make_host_staged_communicator(
    std::unique_ptr<AsynchronousCommunicator> host, int cuda_device) {
  return std::make_unique<HostStagedCommunicator>(std::move(host), cuda_device);
}

}  // namespace scalemark
