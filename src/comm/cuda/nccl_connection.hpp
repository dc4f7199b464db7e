// Holds the NCCL connection of the ranks of a group, a stream for their collectives, and the thread
// that watches it. It is internal to comm/cuda/.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/communicator.hpp"
#include "comm/cuda/runtime.hpp"
#include "comm/nccl_log.hpp"
#include "comm/watchdog.hpp"
#include "measure/clock.hpp"

namespace scalemark {

/// Returns the log of this process, which is created before the first call of NCCL.
const NcclLog& nccl_log();

ncclDataType_t nccl_type(DataType type);

/// Calls `post(peer)` for all `peers` ranks as one operation. After an error the others are queued
/// too, since a group must be closed. Throws CommError where the group cannot be opened.
template <typename Post>
ncclResult_t post_grouped(int peers, Post post) {
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  ncclResult_t queued = ncclSuccess;
  for (int peer = 0; peer < peers; ++peer)
    if (const ncclResult_t result = post(peer); result != ncclSuccess) queued = result;
  const ncclResult_t ended = ncclGroupEnd();
  return queued != ncclSuccess ? queued : ended;
}

/// Watches the NCCL operations in flight. The host runs ahead of the GPU, so the phases of the host
/// do not notice a hang of the network, and an error inside NCCL is noticed only by asking for it.
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

/// Owns the connection.
class NcclConnection {
 public:
  /// Connects the ranks of the group; the call is collective. Throws CommError.
  NcclConnection(RankGroup& group, int cuda_device);
  ~NcclConnection();
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  ncclComm_t communicator() const { return communicator_; }
  cudaStream_t stream() const { return stream_; }
  NcclWatch& watch() { return *watch_; }

 private:
  void connect(RankGroup& group, int cuda_device);
  void make_stream(int cuda_device);

  Unwinding unwinding_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
  std::unique_ptr<NcclWatch> watch_;
};

}  // namespace scalemark
