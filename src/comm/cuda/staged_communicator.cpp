// CUDA buffers over a communicator of host memory: GPU -> pinned host memory -> sum -> GPU.
#include <memory>
#include <utility>
#include <vector>

#include "comm/cuda/check.hpp"
#include "comm/nccl_factory.hpp"

namespace scalemark {
namespace {

/// Pinned host memory.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    check_cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  ~PinnedMemory() { cudaFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// The copy to the host runs beside the computation; the sum runs in wait(), in the order of the
/// calls, which is the same on all ranks.
class StagedPending : public Pending {
 public:
  StagedPending(Communicator& host, const Buffer& buffer, std::shared_ptr<PinnedMemory> staged,
                cudaStream_t compute, cudaStream_t copies)
      : host_(host),
        buffer_(buffer),
        staged_(std::move(staged)),
        compute_(compute),
        copies_(copies) {
    check_cuda(cudaEventRecord(event_, compute_), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(copies_, event_, 0), "cudaStreamWaitEvent");
    check_cuda(
        cudaMemcpyAsync(staged_->data(), buffer_.data, bytes(), cudaMemcpyDeviceToHost, copies_),
        "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(event_, copies_), "cudaEventRecord");
  }
  ~StagedPending() override { cudaStreamSynchronize(copies_); }

  void wait() override {
    check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
    const auto sum = host_.start_allreduce({staged_->data(), buffer_.count, buffer_.type}, nullptr);
    sum->wait();
    seconds_ = sum->seconds();
    check_cuda(
        cudaMemcpyAsync(buffer_.data, staged_->data(), bytes(), cudaMemcpyHostToDevice, copies_),
        "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(event_, copies_), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(compute_, event_, 0), "cudaStreamWaitEvent");
  }
  double seconds() const override { return seconds_; }

 private:
  std::size_t bytes() const { return buffer_.count * size_of(buffer_.type); }

  Communicator& host_;
  Buffer buffer_;
  std::shared_ptr<PinnedMemory> staged_;
  cudaStream_t compute_, copies_;
  CudaEvent event_;
  double seconds_ = 0;
};

class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, int cuda_device) : host_(std::move(host)) {
    check_cuda(cudaSetDevice(cuda_device), "cudaSetDevice");
    check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  }
  ~StagedCommunicator() override { cudaStreamDestroy(copies_); }

  std::string_view name() const override { return host_->name(); }
  int size() const override { return host_->size(); }
  WireDtype wire_dtype() const override { return host_->wire_dtype(); }
  std::string algorithm() const override { return host_->algorithm(); }
  std::string transport() const override {
    return host_->transport() + ", staged through pinned host memory";
  }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return host_->wire_bytes(bytes); }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    return std::make_unique<StagedPending>(*host_, buffer,
                                           memory(buffer.count * size_of(buffer.type)),
                                           static_cast<cudaStream_t>(stream), copies_);
  }

 private:
  /// Memory that no operation holds any more, or new: pinning is slow, and every step needs the
  /// same sizes.
  std::shared_ptr<PinnedMemory> memory(std::size_t bytes) {
    for (const auto& free : memory_)
      if (free.use_count() == 1 && free->bytes() == bytes) return free;
    memory_.push_back(std::make_shared<PinnedMemory>(bytes));
    return memory_.back();
  }

  std::unique_ptr<Communicator> host_;
  std::vector<std::shared_ptr<PinnedMemory>> memory_;
  cudaStream_t copies_ = nullptr;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       int cuda_device) {
  return std::make_unique<StagedCommunicator>(std::move(host), cuda_device);
}

}  // namespace scalemark
