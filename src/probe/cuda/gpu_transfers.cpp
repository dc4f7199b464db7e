// Measures copies with CUDA events on a separate stream.
#include "probe/gpu_transfers.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "comm/cuda/runtime.hpp"
#include "measure/statistics.hpp"
#include "platform/memory_limit.hpp"
#include "probe/memory_bandwidth.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kBytes = 64 << 20;
constexpr int kAtOnce = 4;  ///< copies between two events
constexpr std::size_t kFewestTimes = 2;

class CopyStream {
 public:
  CopyStream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  }
  ~CopyStream() { cudaStreamDestroy(stream_); }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Allocates memory of the current device.
class DeviceMemory {
 public:
  DeviceMemory() { check_cuda(cudaMalloc(&data_, kBytes), "cudaMalloc"); }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// Pins host memory during its lifetime.
class Pinned {
 public:
  explicit Pinned(const NumaMemory& memory) : data_(memory.data()) {
    check_cuda(cudaHostRegister(data_, memory.bytes(), cudaHostRegisterDefault),
               "cudaHostRegister");
  }
  ~Pinned() { cudaHostUnregister(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  void* data_;
};

/// Restores the device that was current before at the end of its life.
class DeviceGuard {
 public:
  DeviceGuard() { check_cuda(cudaGetDevice(&before_), "cudaGetDevice"); }
  ~DeviceGuard() { cudaSetDevice(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
};

void use(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }

/// Measures `copy`, which moves kBytes on `stream`.
template <typename Copy>
double bytes_per_second(const CopyStream& stream, double seconds, Copy copy) {
  copy();  // maps what must be mapped
  stream.synchronize();
  const TimedEvent begin, end;
  const std::vector<double> times = repeat_for(seconds, kFewestTimes, [&] {
    check_cuda(cudaEventRecord(begin, stream), "cudaEventRecord");
    for (int i = 0; i < kAtOnce; ++i) copy();
    check_cuda(cudaEventRecord(end, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  });
  return static_cast<double>(kBytes) * kAtOnce / mean(times);
}

void compare(const void* got, unsigned char expected, const std::string& way) {
  const auto* bytes = static_cast<const unsigned char*>(got);
  const auto* wrong =
      std::find_if(bytes, bytes + kBytes, [&](unsigned char byte) { return byte != expected; });
  if (wrong != bytes + kBytes)
    throw RunError(
        fmt::format("copy {}: byte {} arrived as {}, not {}: the GPU, its link or memory "
                    "is broken",
                    way, wrong - bytes, *wrong, expected));
}

GpuCopy measure_copies(int node, int device, double seconds) {
  const NumaMemory host(node, kBytes);
  const Pinned pinned(host);
  const DeviceMemory gpu;
  const CopyStream stream;
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, kBytes, kind, stream), "cudaMemcpyAsync");
  };
  const auto pattern = static_cast<unsigned char>(0x5a + node);
  std::memset(host.data(), pattern, kBytes);
  GpuCopy result{node, 0, 0};
  result.to_device = bytes_per_second(
      stream, seconds, [&] { copy(gpu.data(), host.data(), cudaMemcpyHostToDevice); });
  std::memset(host.data(), 0, kBytes);
  result.from_device = bytes_per_second(
      stream, seconds, [&] { copy(host.data(), gpu.data(), cudaMemcpyDeviceToHost); });
  compare(host.data(), pattern, fmt::format("from NUMA node {} to GPU {} and back", node, device));
  return result;
}

PeerLink measure_link(int from, int to, double seconds) {
  PeerLink link{from, to, false, 0};
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
  link.can_access = can != 0;
  use(to);
  const DeviceMemory target;
  check_cuda(cudaMemset(target.data(), 0, kBytes), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  use(from);
  if (link.can_access) {
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(to, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();  // clears it
    else
      check_cuda(enabled, "cudaDeviceEnablePeerAccess");
  }
  const DeviceMemory source;
  const auto pattern = static_cast<unsigned char>(16 * from + to + 1);
  check_cuda(cudaMemset(source.data(), pattern, kBytes), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const CopyStream stream;
  link.bytes_per_second = bytes_per_second(stream, seconds, [&] {
    check_cuda(cudaMemcpyPeerAsync(target.data(), to, source.data(), from, kBytes, stream),
               "cudaMemcpyPeerAsync");
  });
  std::vector<unsigned char> arrived(kBytes);
  check_cuda(cudaMemcpy(arrived.data(), target.data(), kBytes, cudaMemcpyDefault), "cudaMemcpy");
  compare(arrived.data(), pattern, fmt::format("from GPU {} to GPU {}", from, to));
  return link;
}

std::optional<bool> attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value != 0;
  cudaGetLastError();  // clears it
  return std::nullopt;
}

/// This is CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, for which the runtime has no name.
std::optional<bool> has_dmabuf(int device) {
  constexpr int kDmaBufSupported = 124;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return std::nullopt;
  const auto ask = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  int value = 0;
  const bool told = ask != nullptr && ask(&value, kDmaBufSupported, device) == 0;
  dlclose(driver);
  return told ? std::optional(value != 0) : std::nullopt;
}

}  // namespace

GpuTraits gpu_traits(int device) {
  return {has_dmabuf(device), attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, device)};
}

std::vector<GpuCopy> measure_gpu_copies(int device, double seconds) {
  const DeviceGuard guard;
  use(device);
  std::vector<GpuCopy> copies;
  for (const int node : numa_nodes()) {
    try {
      copies.push_back(measure_copies(node, device, seconds));
    } catch (const EnvironmentError&) {  // a node that this process may not use
    }
  }
  return copies;
}

std::vector<PeerLink> measure_peer_links(double seconds) {
  const DeviceGuard guard;
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<PeerLink> links;
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to)
      if (from != to) links.push_back(measure_link(from, to, seconds));
  return links;
}

}  // namespace scalemark
