// Connects the ranks of a group by NCCL, and checks its operations for asynchronous errors and
// deadlines.
#include "comm/cuda/nccl_connection.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "comm/abort.hpp"
#include "streams.hpp"

namespace scalemark {

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

NcclConnection::NcclConnection(RankGroup& group, int cuda_device) {
  nccl_log();
  try {
    connect(group, cuda_device);
    watch_ = std::make_unique<NcclWatch>(communicator_, cuda_device, group.watchdog());
  } catch (...) {
    if (communicator_) ncclCommAbort(communicator_);
    if (stream_) cudaStreamDestroy(stream_);
    throw;
  }
}

/// Nothing here throws, whatever the state of the device. A rank that fails alone does not wait for
/// its peers, and does not let them notice its end before it has reported the cause.
NcclConnection::~NcclConnection() {
  if (unwinding_) {
    watch_.reset();
    leave_behind([communicator = communicator_] { ncclCommAbort(communicator); });
    return;
  }
  const bool done = cudaStreamSynchronize(stream_) == cudaSuccess;
  watch_->look_now();
  watch_.reset();
  if (done) {
    ncclCommFinalize(communicator_);
    ncclCommDestroy(communicator_);
  } else {
    ncclCommAbort(communicator_);
  }
  cudaStreamDestroy(stream_);
}

void NcclConnection::make_stream(int cuda_device) {
  check_cuda(cudaSetDevice(cuda_device), "cudaSetDevice");
  int low = 0, high = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, high),
             "cudaStreamCreateWithPriority");
}

/// Blocks inside NCCL until all ranks have arrived. If one never does, the watchdog's thread ends
/// the job. The communicator is a blocking one, since that queues a collective at once, without
/// asking whether the one before is queued. A rank that fails reports it before it waits for the
/// agreement of the others: they may be inside NCCL, and wait for it.
void NcclConnection::connect(RankGroup& group, int cuda_device) {
  const PhaseScope phase(group.watchdog(), "nccl start-up");
  std::string id(sizeof(ncclUniqueId), '\0');
  group.agree_on([&] {
    make_stream(cuda_device);
    ncclUniqueId own;
    if (group.rank() == 0) check_nccl(ncclGetUniqueId(&own), "ncclGetUniqueId");
    if (group.rank() == 0) std::memcpy(id.data(), &own, sizeof own);
  });
  id = group.broadcast(id);
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  group.agree_on([&] {
    const ncclResult_t result =
        ncclCommInitRankConfig(&communicator_, group.size(), unique, group.rank(), &config);
    if (result != ncclSuccess && group.size() > 1)
      say_error(fmt::format("rank {}: ncclCommInitRankConfig failed: {}", group.rank(),
                            nccl_words(result)));
    check_nccl(result, "ncclCommInitRankConfig");
  });
}

NcclWatch::NcclWatch(ncclComm_t communicator, int cuda_device, const Watchdog& watchdog)
    : communicator_(communicator),
      cuda_device_(cuda_device),
      watchdog_(watchdog),
      thread_([this] { watch(); }) {}

NcclWatch::~NcclWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NcclWatch::add(std::shared_ptr<CudaEvent> done) {
  const std::lock_guard lock(mutex_);
  in_flight_.push_back({std::move(done), Clock::now()});
}

void NcclWatch::watch() {
  cudaSetDevice(cuda_device_);
  // Queries from this thread must not disturb a graph capture on another one.
  auto mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  std::unique_lock lock(mutex_);
  while (!stop_) {
    look(lock);
    changed_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return stop_; });
  }
}

void NcclWatch::look_now() {
  std::unique_lock lock(mutex_);
  look(lock);
}

void NcclWatch::look(std::unique_lock<std::mutex>& lock) {
  int exit_code = 0;
  const std::string wrong = what_is_wrong(exit_code);
  if (wrong.empty()) return;
  lock.unlock();
  leave_behind([comm = communicator_] { ncclCommAbort(comm); });
  abort_job(exit_code, wrong);
}

std::string NcclWatch::what_is_wrong(int& exit_code) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress)) {
    exit_code = static_cast<int>(ExitCode::failed);
    return fmt::format("NCCL: {}; NCCL_DEBUG=WARN says more",
                       nccl_words(asked != ncclSuccess ? asked : state));
  }
  cudaError_t passed = cudaSuccess;
  while (!in_flight_.empty() && (passed = cudaEventQuery(*in_flight_.front().done)) == cudaSuccess)
    in_flight_.pop_front();
  if (in_flight_.empty()) return {};
  if (passed != cudaErrorNotReady) {
    exit_code = static_cast<int>(ExitCode::failed);
    return fmt::format("GPU {} has failed: {}", cuda_device_, cudaGetErrorString(passed));
  }
  const std::chrono::duration<double> age = Clock::now() - in_flight_.front().started;
  if (age.count() <= watchdog_.timeout()) return {};
  exit_code = static_cast<int>(ExitCode::timeout);
  const Progress progress = watchdog_.progress();
  return fmt::format(
      "timeout: an NCCL operation of GPU {} has not ended after {:.1f} s (last step: {}); a peer "
      "or the network "
      "hangs. If it may take longer, raise --timeout (now {:g} s)",
      cuda_device_, age.count(), progress.step, watchdog_.timeout());
}

}  // namespace scalemark
