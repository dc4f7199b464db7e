// Internal to comm/cuda/: watches the NCCL operations in flight. The host runs ahead of the GPU, so
// a hang of the network is not seen by the host's own phases; an error inside NCCL is seen by
// nobody unless asked for.
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
  /// A thread that looks every 100 ms. On an asynchronous error, or when an operation is older than
  /// the watchdog's timeout, the whole job ends (exit code 4 or 5), then ncclCommAbort.
  NcclWatch(ncclComm_t communicator, int cuda_device, const Watchdog& watchdog);
  ~NcclWatch();
  /// Looks at once, on this thread: behind the last operation nothing else would.
  void look_now();
  /// `done` is recorded behind an operation that has just been started.
  void add(std::shared_ptr<CudaEvent> done);

 private:
  struct InFlight {
    std::shared_ptr<CudaEvent> done;
    Clock::time_point started;
  };
  void watch();
  /// Ends the job where something is wrong.
  void look(std::unique_lock<std::mutex>& lock);
  /// What is wrong, or empty.
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
