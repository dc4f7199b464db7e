// Runs the MPI thread: its life, the queue of commands, and the rounds of calls made by it and by
// threads that wait.
#include "comm/mpi_world.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <utility>

#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "error.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "streams.hpp"

namespace scalemark {

namespace {

constexpr std::size_t longest_host = 64;
constexpr unsigned timer_slack =
    1000;  ///< ns; the default of 50 us would double the shortest pauses

bool completes_soon(MPI_Request& request) {
  constexpr int tests = 100;  // about 5 us
  int complete = 0;
  for (int i = 0; i < tests && !complete; ++i)
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
  return complete != 0;
}

std::vector<std::string> gather_hosts(int size) {
  std::array<char, longest_host> own{};
  gethostname(own.data(), own.size() - 1);
  std::vector<char> all(longest_host * static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(own.data(), longest_host, MPI_CHAR, all.data(), longest_host, MPI_CHAR,
                          MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank)
    hosts.emplace_back(all.data() + longest_host * static_cast<std::size_t>(rank));
  return hosts;
}

constexpr std::uint64_t kFewestDescriptors = 32;  // a single rank needs 26

std::atomic<bool> is_starting{false};
StartFailureTold tells_failed_start = [](ExitCode, const std::string& what) {
  if (is_first_to_say(what)) say_error(what);
};

/// Returns the exit status that replaces `status`.
int status_of_start(int status) {
  if (!is_starting.exchange(false) || abort_under_way()) return status;
  const char* const what =
      "MPI could not be started: its own message is above. Look at OMPI_MCA_* and PMIX_* "
      "variables, at an mpirun of another MPI, and at room in TMPDIR and /dev/shm.";
  tells_failed_start(ExitCode::environment, what);
  std::fflush(stderr);
  return static_cast<int>(ExitCode::environment);
}

extern "C" void end_of_start() {
  if (is_starting) _exit(1);
}

/// Calls MPI_Init_thread with MPI_THREAD_SERIALIZED. Returns false where this MPI requires all
/// calls from the thread that started it. An MPI that cannot start ends the process from within, by
/// exit() or by _exit(), with status 1 and its own message. Both are intercepted meanwhile, so that
/// the process ends with exit code 7 and a hint. The limit of descriptors is raised as far as
/// allowed; too few are refused. Throws EnvironmentError, and ResultError where several ranks may
/// not share files of the size that they need.
bool start_mpi() {
  require_descriptors(kFewestDescriptors, "MPI");
  const auto hint = launcher_hint(process_environment());
  if (hint && hint->tasks > 1) refuse_too_small_for_ranks();
  std::atexit(end_of_start);
  is_starting = true;
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  is_starting = false;
  if (code != MPI_SUCCESS)
    throw EnvironmentError("MPI_Init_thread failed: see Open MPI's message above");
  return provided >= MPI_THREAD_SERIALIZED;
}

}  // namespace

void tell_failed_start_by(StartFailureTold tells) { tells_failed_start = tells; }

/// Held by the thread that makes MPI calls.
class MpiWorld::MpiLock {
 public:
  explicit MpiLock(MpiWorld& world) : world_(world), lock_(world.mpi_mutex_) { note_holder(); }
  /// Converts to false where another thread has the lock, or this one already.
  MpiLock(MpiWorld& world, std::try_to_lock_t)
      : world_(world), lock_(world.mpi_mutex_, std::defer_lock) {
    if (world_.holder_ == std::this_thread::get_id()) return;
    if (lock_.try_lock()) note_holder();
  }
  ~MpiLock() {
    if (lock_.owns_lock()) world_.holder_ = std::thread::id();
  }
  explicit operator bool() const { return lock_.owns_lock(); }

 private:
  void note_holder() { world_.holder_ = std::this_thread::get_id(); }
  MpiWorld& world_;
  std::unique_lock<std::mutex> lock_;
};

MpiWorld::MpiWorld(Watchdog& watchdog) : watchdog_(watchdog) {
  prctl(PR_SET_TIMERSLACK, timer_slack);  // for this thread, which will wait
  std::promise<void> up;
  auto is_up = up.get_future();
  thread_ = std::thread([this, up = std::move(up)]() mutable { main_loop(std::move(up)); });
  native_ = thread_.native_handle();
  try {
    is_up.get();
  } catch (...) {
    thread_.join();
    throw;
  }
  watchdog_.set_liveness_probe([this] { return probe_liveness(); });
  watchdog_.set_abort([this](int exit_code) { abort(exit_code); });
}

MpiWorld::~MpiWorld() {
  if (abort_under_way()) await_exit();
  try {
    finalize();
  } catch (const std::exception& error) {
    abort_job(static_cast<int>(ExitCode::failed), fmt::format("MPI_Finalize: {}", error.what()));
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MpiWorld::initialize() {
  const char* name = "OMPI_MCA_coll_libnbc_iallreduce_algorithm";
  const char* chosen = std::getenv(name);
  const std::string user_value = chosen ? chosen : "";
  set_mca_defaults();
  any_thread_ = start_mpi();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hosts_ = gather_hosts(size);
  watchdog_.set_identity(
      fmt::format("rank {} of {} on {}", rank_, size, hosts_[static_cast<std::size_t>(rank_)]));
  selector_.emplace(user_value);
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &liveness_communicator_), "MPI_Comm_dup");
  liveness_probe_ = std::make_unique<LivenessProbe>(
      liveness_communicator_, hosts_, watchdog_,
      [this](auto operation) { outstanding_.post(std::move(operation)); });
}

void MpiWorld::main_loop(std::promise<void> up) {
  prctl(PR_SET_NAME, "scalemark-mpi");
  prctl(PR_SET_TIMERSLACK, timer_slack);
  try {
    const MpiLock lock(*this);
    initialize();
  } catch (...) {
    up.set_exception(std::current_exception());
    return;
  }
  up.set_value();
  PollBackoff backoff;
  const auto is_helped = [this] { return any_thread_ && waiting_ > 0; };
  while (true) {
    bool worked = false;
    std::chrono::duration<double> round{};
    {
      const MpiLock lock(*this);
      const auto start = Clock::now();
      worked = make_calls();
      round = Clock::now() - start;
    }
    std::unique_lock lock(mutex_);
    if (stop_) return;
    const bool helped = is_helped(), idle = idle_ || helped;
    worked = std::exchange(nudged_, false) || worked;  // more is on the way
    if (helped) {                                      // the waiting thread does this
      worked = false;
      round = {};
    }
    const auto pause = backoff.pause({worked, waiting_ > 0 && !idle, idle, round});
    if (pause.count() > 0)
      wake_.wait_for(lock, pause,
                     [&] { return stop_ || nudged_ || (!commands_.empty() && !is_helped()); });
  }
}

/// Makes one round of calls while holding the lock. Returns true where something was started or
/// completed.
bool MpiWorld::make_calls() {
  bool worked = run_commands();
  worked = test_operations() || worked;
  if (liveness_probe_) liveness_probe_->tick();
  idle_ = outstanding_.requests() <= (hosts_.size() > 1 ? 1u : 0u);
  return worked;
}

bool MpiWorld::run_commands() {
  if (!commanded_) return false;
  std::deque<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
    commanded_ = false;
  }
  for (auto& command : commands) command();
  return !commands.empty();
}

bool MpiWorld::test_operations() {
  const auto finished = outstanding_.test();
  if (finished.empty()) return false;
  const auto now = Clock::now();
  for (const auto& operation : finished)
    if (operation->on_complete) std::exchange(operation->on_complete, nullptr)();
  const std::lock_guard lock(mutex_);
  for (const auto& operation : finished) {
    operation->completed = now;
    operation->done = true;
  }
  completed_.notify_all();
  return true;
}

void MpiWorld::enqueue(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
    commanded_ = true;
  }
  wake_.notify_one();
}

void MpiWorld::nudge() {
  {
    const std::lock_guard lock(mutex_);
    nudged_ = true;
  }
  wake_.notify_one();
}

/// Posts the operation on this thread. Returns false where another thread has the lock.
bool MpiWorld::post_here(const std::shared_ptr<Operation>& operation) {
  if (!any_thread_) return false;
  const MpiLock lock(*this, std::try_to_lock);
  if (!lock) return false;
  run_commands();  // what was started before goes first
  outstanding_.post(operation);
  return true;
}

std::shared_ptr<Operation> MpiWorld::start(std::vector<Operation::Post> stages, Poster poster) {
  auto operation = std::make_shared<Operation>(std::move(stages));
  if (poster == Poster::mpi_thread || !post_here(operation))
    start(operation);
  else if (poster == Poster::caller ||
           (poster == Poster::caller_alone && idle_ && hosts_.size() > 2))
    nudge();
  return operation;
}

void MpiWorld::wait(Operation& operation, const char* phase) {
  const PhaseScope scope(watchdog_, phase);
  std::unique_lock lock(mutex_);
  ++waiting_;
  if (any_thread_) {
    lock.unlock();
    if (!operation.done) help(operation);
    lock.lock();
  } else {
    nudged_ = true;
    wake_.notify_one();
    wait_until_done(completed_, lock, [&] { return operation.done.load(); });
  }
  const bool last = --waiting_ == 0;
  const bool more = !idle_ || !commands_.empty();
  lock.unlock();
  if (any_thread_ && last && more) nudge();
  if (!operation.error.empty()) throw CommError(fmt::format("{}: {}", phase, operation.error));
}

/// Makes rounds of calls until the operation is done, with pauses where there is nothing to do.
void MpiWorld::help(const Operation& operation) {
  const auto begin = Clock::now();
  std::chrono::duration<double> asleep{0};
  PollBackoff backoff(begin);
  while (true) {
    bool worked = false;
    if (const MpiLock lock(*this, std::try_to_lock); lock)
      worked = make_calls();
    else
      std::this_thread::yield();  // the thread that has it may share this core
    if (operation.done) break;
    const auto pause = backoff.pause({worked, /*waited=*/true, /*idle=*/false});
    if (pause.count() == 0) continue;
    const auto before = Clock::now();
    std::unique_lock lock(mutex_);
    completed_.wait_for(lock, pause, [&] { return operation.done.load(); });
    asleep += Clock::now() - before;
  }
  helpers_seconds_ +=
      std::max(0., std::chrono::duration<double>(operation.completed - begin - asleep).count());
}

void MpiWorld::run_small(const char* phase, const std::function<MPI_Request()>& post) {
  MPI_Request begun = MPI_REQUEST_NULL;
  if (any_thread_) {
    if (const MpiLock lock(*this, std::try_to_lock); lock) {
      run_commands();  // what was started before goes first
      begun = post();
      if (completes_soon(begun)) return;
    }
  }
  run(phase, [&] { return std::vector{begun == MPI_REQUEST_NULL ? post() : begun}; });
}

void MpiWorld::release(std::function<void()> free_handles) {
  enqueue([this, free_handles = std::move(free_handles)] {
    if (liveness_probe_) free_handles();
  });
}

void MpiWorld::finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finalized_, true)) return;
  }
  run("finalize", [] {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    return std::vector{request};
  });
  release_what_was_left();
  call("finalize", [this] { shut_down(); });
}

void MpiWorld::shut_down() {
  watchdog_.set_liveness_probe(nullptr);
  watchdog_.set_abort(nullptr);  // from here an abort is a plain _exit
  liveness_probe_->cancel();
  while (outstanding_.requests() > 0) outstanding_.test();
  liveness_probe_.reset();
  selector_->close();
  MPI_Comm_free(&liveness_communicator_);
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

double MpiWorld::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (pthread_getcpuclockid(native_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) +
         helpers_seconds_;
}

std::string MpiWorld::probe_liveness() {
  // The promise is shared, because the answer may come after this thread has stopped waiting.
  auto answer = std::make_shared<std::promise<std::string>>();
  auto text = answer->get_future();
  enqueue([this, answer] {
    if (!liveness_probe_) return answer->set_value("  no liveness probe: MPI is being finalised");
    liveness_probe_->ask([answer](const std::string& report) { answer->set_value(report); });
  });
  if (text.wait_for(LivenessProbe::patience + std::chrono::milliseconds{500}) ==
      std::future_status::ready)
    return text.get();
  return "  no liveness probe: this rank itself hangs inside an MPI call";
}

void MpiWorld::abort(int exit_code) {
  const auto leave = [exit_code] { MPI_Abort(MPI_COMM_WORLD, exit_code); };
  if (holder_ == std::this_thread::get_id()) return leave();
  enqueue(leave);
}

}  // namespace scalemark

/// Replaces the _exit of the C library, also for libraries.
extern "C" [[noreturn]] void _exit(int status) {
  const int code = scalemark::status_of_start(status);
  while (true) syscall(SYS_exit_group, code);
}
