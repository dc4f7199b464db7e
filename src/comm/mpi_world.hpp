// Internal to comm/: the one thread that owns all MPI calls of a process. It initialises MPI,
// starts nonblocking operations, tests them, answers roll-calls and finalises. Open MPI polls; this
// thread sleeps between tests, so it never steals the core that computes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/mca.hpp"
#include "comm/mpi.hpp"
#include "comm/operations.hpp"
#include "comm/roll_call.hpp"
#include "comm/watchdog.hpp"

namespace scalemark {

class MpiWorld {
 public:
  /// Starts the thread and MPI_Init in it; blocks until MPI is up. Throws EnvironmentError where it
  /// cannot start.
  explicit MpiWorld(Watchdog& watchdog);
  /// Finalises unless that is done or an abort is under way.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  Watchdog& watchdog() const { return watchdog_; }
  int rank() const { return rank_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< by world rank
  double cpu_seconds() const;

  /// Runs `f` on the MPI thread under the deadline of `phase` and gives its result. For the few MPI
  /// calls that only exist as blocking ones; ranks should pass a barrier before them, since they
  /// poll.
  template <typename F>
  std::invoke_result_t<F> call(const char* phase, F f) {
    const PhaseScope scope(watchdog_, phase);
    // Shared: the MPI thread may still be leaving the task when the result is already here.
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(std::move(f));
    auto result = task->get_future();
    enqueue([task] { (*task)(); });
    return result.get();
  }

  /// Hands an operation to the MPI thread; returns at once.
  std::shared_ptr<Operation> start(std::vector<Operation::Post> stages);
  std::shared_ptr<Operation> start(Operation::Post post) {
    return start(std::vector{std::move(post)});
  }
  /// Sleeps until `operation` is complete, under the deadline of `phase`. Throws CommError where it
  /// failed.
  void wait(Operation& operation, const char* phase);
  /// Both.
  void run(const char* phase, Operation::Post post) { wait(*start(std::move(post)), phase); }
  bool done(const Operation& operation) const;

  /// Any thread, returns at once: `free_handles` runs on the MPI thread, unless MPI is finalised by
  /// then.
  void release(std::function<void()> free_handles);
  /// Collective: waits for all ranks asleep, then MPI_Finalize. Later calls do nothing.
  void finalize();

  /// MPI thread only.
  AllreduceSelector& selector() { return *selector_; }

 private:
  void enqueue(std::function<void()> command);
  void main_loop(std::promise<void> up);
  void initialize();
  bool run_commands();
  bool test_operations();
  void shut_down();
  std::string ask_roll_call();
  void abort(int exit_code);

  Watchdog& watchdog_;
  int rank_ = 0;
  std::vector<std::string> hosts_;
  MPI_Comm roll_communicator_ = MPI_COMM_NULL;
  std::optional<AllreduceSelector> selector_;
  Outstanding outstanding_;
  std::unique_ptr<RollCall> roll_call_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;       ///< the MPI thread
  std::condition_variable completed_;  ///< those who wait for operations
  std::deque<std::function<void()>> commands_;
  int waiting_ = 0;
  bool nudged_ = false;
  bool finalized_ = false;
  bool stop_ = false;
  pthread_t native_ = 0;
  std::thread thread_;
};

}  // namespace scalemark
