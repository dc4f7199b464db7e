// Watches the NCCL operations in flight. The host runs ahead of the GPU, so the phases of the host
// do not notice a hang of the network, and an error inside NCCL is noticed only by asking for it.
// It is internal to comm/cuda/.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/cuda/check.hpp"
#include "comm/watchdog.hpp"
#include "measure/clock.hpp"

namespace scalemark {

class NcclWatch {
 public:
  /// Starts a thread that checks every 100 ms. On an asynchronous error, or when an operation is
  /// older than the watchdog's timeout, it ends the whole job (exit code 4 or 5) and then calls
  /// ncclCommAbort.
  NcclWatch(ncclComm_t communicator, int cuda_device, const Watchdog& watchdog);
  ~NcclWatch();
  /// Checks now, on this thread. This is needed after the last operation.
  void look_now();
  /// Adds an operation that has just been started. `done` is recorded after it.
  void add(std::shared_ptr<CudaEvent> done);

 private:
  struct InFlight {
    std::shared_ptr<CudaEvent> done;
    Clock::time_point started;
  };
  void watch();
  /// Checks the operations and ends the job where one has failed.
  void look(std::unique_lock<std::mutex>& lock);
  /// Returns what is wrong, or an empty text.
  std::string what_is_wrong(int& exit_code);

  ncclComm_t communicator_;
  int cuda_device_;
  const Watchdog& watchdog_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<InFlight> in_flight_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace scalemark
