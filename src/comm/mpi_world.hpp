// Runs MPI in this process. One thread at a time makes MPI calls, the one that holds the MPI lock.
// Usually this is the MPI thread, which initialises MPI, starts nonblocking operations, tests them,
// answers liveness probes and finalises. Open MPI polls; this thread sleeps between tests, so it
// does not take the core that computes. A thread that waits for an operation has a free core and
// makes the calls itself, since a hand-over would take longer than a small operation. Internal to
// comm/.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
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

#include "comm/liveness_probe.hpp"
#include "comm/mca.hpp"
#include "comm/mpi.hpp"
#include "comm/operations.hpp"
#include "comm/watchdog.hpp"

namespace scalemark {

/// Owns MPI and the MPI thread. There is one for each process.
class MpiWorld {
 public:
  /// Starts the thread and MPI_Init in it, and blocks until MPI is initialised. Throws
  /// EnvironmentError where it cannot start.
  explicit MpiWorld(Watchdog& watchdog);
  /// Finalises MPI unless that is done or an abort is in progress.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  Watchdog& watchdog() const { return watchdog_; }
  int rank() const { return rank_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< indexed by world rank
  /// Returns the CPU seconds used by the MPI thread, and by others in MPI calls.
  double cpu_seconds() const;

  /// Runs `f` while holding the lock, under the deadline of `phase`, and returns its result. It
  /// serves the few MPI calls that exist only as blocking ones; ranks should pass a barrier before
  /// them, since these calls poll.
  template <typename F>
  std::invoke_result_t<F> call(const char* phase, F f) {
    const PhaseScope scope(watchdog_, phase);
    // The task is shared: the MPI thread may still be leaving it when the result is already here.
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(std::move(f));
    auto result = task->get_future();
    enqueue([task] { (*task)(); });
    return result.get();
  }

  /// Says who posts an operation. `mpi_thread`: its first stage is work. `caller`: posting is
  /// quick, and is done by the caller where nobody else has the lock. `caller_alone`: the operation
  /// is small as well (kEagerBytes), so that between two ranks the library needs no further call;
  /// no thread is woken for it. `waiter`: the caller waits for the operation at once, and makes the
  /// calls itself.
  enum class Poster { mpi_thread, caller, caller_alone, waiter };
  static constexpr std::size_t kEagerBytes = 4000;  ///< Open MPI's least eager limit is 4 KiB

  /// Starts an operation and returns at once.
  std::shared_ptr<Operation> start(std::vector<Operation::Post> stages,
                                   Poster poster = Poster::mpi_thread);
  std::shared_ptr<Operation> start(Operation::Post post, Poster poster = Poster::mpi_thread) {
    return start(std::vector{std::move(post)}, poster);
  }
  /// Starts an existing operation on the MPI thread.
  void start(std::shared_ptr<Operation> operation) {
    enqueue([this, operation = std::move(operation)] { outstanding_.post(operation); });
  }
  /// Makes MPI calls, or sleeps, until `operation` is complete, under the deadline of `phase`.
  /// Throws CommError where it failed.
  void wait(Operation& operation, const char* phase);
  /// Starts an operation and waits for it.
  void run(const char* phase, Operation::Post post) {
    wait(*start(std::move(post), Poster::waiter), phase);
  }

  /// Starts a small operation of one request and waits for it. It is first tested alone for a
  /// moment, since the general path takes longer than the operation. With a late partner it is
  /// treated like any other.
  void run_small(const char* phase, const std::function<MPI_Request()>& post);

  /// Runs `free_handles` while holding the lock, unless MPI is finalised by then. Any thread may
  /// call it; it returns at once.
  void release(std::function<void()> free_handles);
  /// Sleeps until all ranks have arrived, then calls MPI_Finalize. The call is collective; later
  /// calls do nothing.
  void finalize();

  /// Use it only while holding the lock.
  AllreduceSelector& selector() { return *selector_; }

 private:
  class MpiLock;
  void enqueue(std::function<void()> command);
  bool post_here(const std::shared_ptr<Operation>& operation);
  void nudge();
  void main_loop(std::promise<void> up);
  void initialize();
  void help(const Operation& operation);
  bool make_calls();
  bool run_commands();
  bool test_operations();
  void shut_down();
  std::string probe_liveness();
  void abort(int exit_code);

  Watchdog& watchdog_;
  int rank_ = 0;
  std::vector<std::string> hosts_;
  bool any_thread_ = false;  ///< may make MPI calls, one at a time

  std::mutex mpi_mutex_;  ///< guards the members down to liveness_probe_
  std::atomic<std::thread::id> holder_{};
  MPI_Comm liveness_communicator_ = MPI_COMM_NULL;
  std::optional<AllreduceSelector> selector_;
  Outstanding outstanding_;
  std::unique_ptr<LivenessProbe> liveness_probe_;

  std::atomic<bool> commanded_{false};      ///< there are commands
  std::atomic<bool> idle_{true};            ///< nothing in flight but the wait for liveness probes
  std::atomic<double> helpers_seconds_{0};  ///< time in MPI calls of threads that waited

  mutable std::mutex mutex_;           ///< guards the members below, and the errors of operations
  std::condition_variable wake_;       ///< the MPI thread
  std::condition_variable completed_;  ///< threads that wait for operations
  std::deque<std::function<void()>> commands_;
  int waiting_ = 0;
  bool nudged_ = false;
  bool finalized_ = false;
  bool stop_ = false;
  pthread_t native_ = 0;
  std::thread thread_;
};

}  // namespace scalemark
