// A CUDA runtime without a GPU: the calls that src/comm/cuda, its tests and the fake NCCL make. A
// stream is a thread that does its queued work in order, an event the mark that it made last, and
// device memory host memory that holds NaN at first. FAKE_CUDA_DEVICES: how many there are (1).
// FAKE_CUDA_FAIL, a fault (fault.hpp): a call by its name, or `dies`: the N-th copy or function of
// a stream kills the device, and every call gives the same error from then on.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/comm/fakes/fault.hpp"

/// A recording. It is in the order in which its parts were queued, in which it is repeated on one
/// stream.
struct CUgraph_st {
  std::deque<std::function<void()>> work;
};
struct CUgraphExec_st : CUgraph_st {};

struct CUstream_st {
  std::deque<std::function<void()>> work;  ///< the first is being done
  bool closing = false;
  CUgraph_st* recorded_in = nullptr;  ///< null: what is queued is done
  CUstream_st* recorded_for = this;   ///< the stream with which the recording began
  std::size_t queued = 0;             ///< parts of the recording so far
  std::size_t joined = 0;             ///< those of them that recorded_for waits for
};

namespace {

struct Mark {
  bool passed = false;
  std::chrono::steady_clock::time_point at;
};

/// Never destroyed: streams outlive main().
struct Gpu {
  std::mutex mutex;  ///< of streams, events and what follows
  std::condition_variable changed;
  bool dead = false;
  std::set<CUstream_st*> streams;
  scalemark::fakes::Fault fault{"FAKE_CUDA_FAIL"};
};
Gpu& gpu() {
  static auto* const it = new Gpu;
  return *it;
}

constexpr std::size_t kMemory = std::size_t{1} << 30;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

cudaError_t give(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

/// What a call gives before it does anything.
cudaError_t begin(const char* call) {
  const std::lock_guard lock(gpu().mutex);
  if (gpu().dead) return give(cudaErrorIllegalAddress);
  if (!gpu().fault.strikes(call)) return cudaSuccess;
  const bool allocates = std::string_view(call).find("lloc") != std::string_view::npos;
  return give(allocates ? cudaErrorMemoryAllocation : cudaErrorDevicesUnavailable);
}

void serve(CUstream_st* stream) {
  std::unique_lock lock(gpu().mutex);
  while (true) {
    gpu().changed.wait(lock, [&] { return !stream->work.empty() || stream->closing; });
    if (stream->work.empty()) break;
    const std::function<void()> next = stream->work.front();
    lock.unlock();
    next();
    lock.lock();
    stream->work.pop_front();
    gpu().changed.notify_all();
  }
  gpu().streams.erase(stream);
  delete stream;
}

CUstream_st* make_stream() {
  auto* const stream = new CUstream_st;
  const std::lock_guard lock(gpu().mutex);
  gpu().streams.insert(stream);
  std::thread(serve, stream).detach();
  return stream;
}

CUstream_st* or_default(cudaStream_t stream) {
  static CUstream_st* const that = make_stream();
  return stream ? stream : that;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  CUstream_st* const to = or_default(stream);
  const std::lock_guard lock(gpu().mutex);
  if (to->recorded_in) {
    to->recorded_in->work.push_back(std::move(work));
    to->queued = to->recorded_in->work.size();
    return;
  }
  to->work.push_back(std::move(work));
  gpu().changed.notify_all();
}

/// A copy or function: one of them may kill the device.
void enqueue_work(cudaStream_t stream, const std::function<void()>& work) {
  enqueue(stream, [work] {
    {
      const std::lock_guard lock(gpu().mutex);
      gpu().dead = gpu().dead || gpu().fault.strikes("dies");
      gpu().changed.notify_all();
      if (gpu().dead) return;
    }
    work();
  });
}

/// Sleeps until `done`, or until the device is dead.
template <typename Done>
cudaError_t wait_until(Done done) {
  std::unique_lock lock(gpu().mutex);
  gpu().changed.wait(lock, [&] { return gpu().dead || done(); });
  return give(gpu().dead ? cudaErrorIllegalAddress : cudaSuccess);
}

cudaError_t allocate(void** data, std::size_t bytes) {
  *data = bytes > kMemory ? nullptr : std::malloc(bytes);
  if (!*data) return give(cudaErrorMemoryAllocation);
  std::memset(*data, 0xff, bytes);
  return cudaSuccess;
}

}  // namespace

struct CUevent_st {
  std::shared_ptr<Mark> mark;       ///< of the last record; null: none
  CUstream_st* recorded = nullptr;  ///< the stream, if that was part of a recording
};

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorDevicesUnavailable:
      return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNotReady:
      return "device not ready";
    default:
      return "another error of the fake CUDA";
  }
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  const char* devices = std::getenv("FAKE_CUDA_DEVICES");
  *count = devices ? std::atoi(devices) : 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return give(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return begin(__func__);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  return allocate(data, bytes);
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  return allocate(data, bytes);
}
/// Both wait for the whole device, as the real ones may.
cudaError_t cudaFree(void* data) {
  const cudaError_t waited = wait_until(
      [] { return std::ranges::all_of(gpu().streams, [](auto* s) { return s->work.empty(); }); });
  if (waited == cudaSuccess) std::free(data);
  return waited;
}
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  if (const cudaError_t wrong = begin("cudaStreamCreate")) return wrong;
  *stream = make_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
/// At once; the stream does what it has before it ends.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(gpu().mutex);
  stream->closing = true;
  gpu().changed.notify_all();
  return give(gpu().dead ? cudaErrorIllegalAddress : cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_until([that = or_default(stream)] { return that->work.empty(); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  enqueue_work(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  enqueue_work(stream, [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(gpu().mutex);
  *status =
      or_default(stream)->recorded_in ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  const std::lock_guard lock(gpu().mutex);
  stream->recorded_in = new CUgraph_st;
  stream->recorded_for = stream;
  stream->queued = stream->joined = 0;
  return cudaSuccess;
}
/// The stream with which the recording began must have waited for all that others have queued.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(gpu().mutex);
  *graph = stream->recorded_in;
  bool joined = true;
  for (CUstream_st* const other : gpu().streams) {
    if (other->recorded_in != *graph) continue;
    joined = joined && (other == stream || other->joined == other->queued);
    other->recorded_in = nullptr;
  }
  return give(joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new CUgraphExec_st{*graph};
  return begin(__func__);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  for (const auto& work : graph->work) enqueue(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return begin(__func__);
}
/// A mark of its own, so that whoever waits for the one before is not held up by this one.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  {
    const std::lock_guard lock(gpu().mutex);
    event->recorded = or_default(stream)->recorded_in ? stream : nullptr;
    if (event->recorded) return cudaSuccess;
  }
  const auto mark = std::make_shared<Mark>();
  enqueue(stream, [mark] {
    const std::lock_guard lock(gpu().mutex);
    mark->at = std::chrono::steady_clock::now();
    mark->passed = !gpu().dead;
  });
  const std::lock_guard lock(gpu().mutex);
  event->mark = mark;
  return cudaSuccess;
}
/// A wait for an event of a recording makes the stream part of it; a recording waits for no other.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  if (CUstream_st* const from = event->recorded) {
    const std::lock_guard lock(gpu().mutex);
    if (!from->recorded_in) return give(cudaErrorCapturedEvent);
    if (!stream->recorded_in) {
      stream->recorded_in = from->recorded_in;
      stream->recorded_for = from->recorded_for;
      stream->queued = stream->joined = 0;
    }
    if (stream == from->recorded_for) from->joined = from->queued;
    return cudaSuccess;
  }
  if (or_default(stream)->recorded_in) return give(cudaErrorStreamCaptureIsolation);
  if (event->mark)
    enqueue(stream, [mark = event->mark] { wait_until([&] { return mark->passed; }); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  const std::lock_guard lock(gpu().mutex);
  if (event->recorded) return give(cudaErrorCapturedEvent);
  return give(!event->mark || event->mark->passed ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return wait_until([mark = event->mark] { return !mark || mark->passed; });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (const cudaError_t wrong = begin(__func__)) return wrong;
  const std::lock_guard lock(gpu().mutex);
  if (from->recorded || to->recorded) return give(cudaErrorCapturedEvent);
  if (!from->mark || !to->mark) return give(cudaErrorInvalidResourceHandle);
  if (!from->mark->passed || !to->mark->passed) return give(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(to->mark->at - from->mark->at).count();
  return cudaSuccess;
}

}  // extern "C"
