// Runs collectives of fp32 values on GPU memory, timed by events on the stream of NCCL.
#include <algorithm>

#include "comm/cuda/nccl_connection.hpp"
#include "comm/cuda/operation_events.hpp"
#include "comm/nccl_factory.hpp"

namespace scalemark {
namespace {

class DeviceFloats {
 public:
  explicit DeviceFloats(std::int64_t bytes) {
    check_cuda(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), "cudaMalloc");
  }
  /// Freeing may wait for all work on the device.
  ~DeviceFloats() {
    if (!unwinding_) cudaFree(data_);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  float* at(std::size_t first) const { return static_cast<float*>(data_) + first; }

 private:
  Unwinding unwinding_;
  void* data_ = nullptr;
};

/// Returns how many operations are timed together, as in nccl-tests: for short messages, events
/// would take a large part of the time.
int operations_between_marks(std::size_t elements) {
  constexpr std::size_t kLong = 64 << 10;  // bytes
  return elements * sizeof(float) < kLong ? 20 : 1;
}

class NcclCarrier : public CollectiveCarrier {
 public:
  NcclCarrier(RankGroup& group, int cuda_device, std::int64_t largest, bool in_place)
      : rank_(static_cast<std::size_t>(group.rank())),
        size_(static_cast<std::size_t>(group.size())),
        in_place_(in_place),
        connection_(group, cuda_device),
        received_(largest),
        sent_(in_place ? 4 : largest) {}

  /// As in nccl-tests, an alltoall cannot run in place.
  bool carries(Collective collective) const override {
    return !in_place_ || collective != Collective::alltoall;
  }
  bool in_place(Collective) const override { return in_place_; }
  void put_sent(std::size_t first, std::span<const float> values) override {
    copy(sent_.at(first), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
  }
  void put_received(std::size_t first, std::span<const float> values) override {
    copy(received_.at(first), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
  }
  void get_received(std::size_t first, std::span<float> values) override {
    copy(values.data(), received_.at(first), values.size_bytes(), cudaMemcpyDeviceToHost);
  }

  std::vector<double> run(Collective collective, std::size_t elements, int repetitions) override {
    const int apart = operations_between_marks(elements);
    std::vector<SharedEvent> marks{events_.record(connection_.stream())};
    for (int i = 0; i < repetitions; ++i) {
      check_nccl(post(collective, elements), "an NCCL collective");
      if ((i + 1) % apart == 0 || i + 1 == repetitions)
        marks.push_back(events_.record(connection_.stream()));
    }
    connection_.watch().add(marks.back());
    check_cuda(cudaStreamSynchronize(connection_.stream()), "cudaStreamSynchronize");
    std::vector<double> seconds;
    for (std::size_t i = 1; i < marks.size(); ++i) {
      const int timed = std::min(apart, repetitions - static_cast<int>(seconds.size()));
      seconds.insert(seconds.end(), static_cast<std::size_t>(timed),
                     seconds_between(marks[i - 1], marks[i]) / timed);
    }
    return seconds;
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, connection_.stream()), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(connection_.stream()), "cudaStreamSynchronize");
  }

  ncclResult_t post(Collective collective, std::size_t elements) {
    const std::size_t block = elements / size_;
    const bool gathers = collective == Collective::allgather;
    float* const to = received_.at(0);
    const float* const from = in_place_ ? received_.at(gathers ? rank_ * block : 0) : sent_.at(0);
    const ncclComm_t comm = connection_.communicator();
    const cudaStream_t stream = connection_.stream();
    switch (collective) {
      case Collective::allreduce:
        return ncclAllReduce(from, to, elements, ncclFloat32, ncclSum, comm, stream);
      case Collective::allgather:
        return ncclAllGather(from, to, block, ncclFloat32, comm, stream);
      case Collective::alltoall:
        return alltoall(block);
      case Collective::broadcast:
      case Collective::reduce_scatter:  // nobody asks for it yet
        break;
    }
    return ncclBroadcast(from, to, elements, ncclFloat32, 0, comm, stream);
  }

  ncclResult_t alltoall(std::size_t block) {
    return post_grouped(static_cast<int>(size_), [&](int peer) {
      const std::size_t first = static_cast<std::size_t>(peer) * block;
      const ncclComm_t comm = connection_.communicator();
      const ncclResult_t sent =
          ncclSend(sent_.at(first), block, ncclFloat32, peer, comm, connection_.stream());
      const ncclResult_t received =
          ncclRecv(received_.at(first), block, ncclFloat32, peer, comm, connection_.stream());
      return received != ncclSuccess ? received : sent;
    });
  }

  std::size_t rank_, size_;
  bool in_place_;
  EventPool events_;
  NcclConnection connection_;
  DeviceFloats received_, sent_;
};

}  // namespace

std::unique_ptr<CollectiveCarrier> make_nccl_carrier(RankGroup& group, int cuda_device,
                                                     std::int64_t largest, bool in_place) {
  return std::make_unique<NcclCarrier>(group, cuda_device, largest, in_place);
}

}  // namespace scalemark
