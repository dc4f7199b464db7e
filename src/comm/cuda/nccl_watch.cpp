// Checks NCCL operations for asynchronous errors and deadlines.
#include "comm/cuda/nccl_watch.hpp"

#include <fmt/format.h>

#include "comm/abort.hpp"

namespace scalemark {

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
