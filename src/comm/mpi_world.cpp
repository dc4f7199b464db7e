// The MPI thread: its life, its queue of commands and its rounds of tests.
#include "comm/mpi_world.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "comm/abort.hpp"
#include "comm/mpi_start.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::size_t longest_host = 64;
constexpr std::chrono::microseconds busy_test{20};  ///< a longer round of tests has moved data

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

}  // namespace

MpiWorld::MpiWorld(Watchdog& watchdog) : watchdog_(watchdog) {
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
  watchdog_.set_roll_call([this] { return ask_roll_call(); });
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
  start_mpi();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hosts_ = gather_hosts(size);
  watchdog_.set_identity(
      fmt::format("rank {} of {} on {}", rank_, size, hosts_[static_cast<std::size_t>(rank_)]));
  selector_.emplace(user_value);
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &roll_communicator_), "MPI_Comm_dup");
  roll_call_ = std::make_unique<RollCall>(
      roll_communicator_, hosts_, watchdog_,
      [this](auto operation) { outstanding_.post(std::move(operation)); });
}

void MpiWorld::main_loop(std::promise<void> up) {
  prctl(PR_SET_NAME, "scalemark-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; the default of 50 us would double the shortest pauses
  try {
    initialize();
    up.set_value();
  } catch (...) {
    up.set_exception(std::current_exception());
    return;
  }
  Pacer pacer;
  while (true) {
    bool worked = run_commands();
    worked = test_operations() || worked;
    if (roll_call_) roll_call_->tick();
    std::unique_lock lock(mutex_);
    if (stop_) return;
    // At rest, one request is in flight where there are peers: the wait for roll-calls.
    const bool idle = outstanding_.requests() <= (hosts_.size() > 1 ? 1u : 0u);
    const auto pause = pacer.pause({worked, waiting_ > 0, idle});
    nudged_ = false;
    if (pause.count() > 0)
      wake_.wait_for(lock, pause, [&] { return stop_ || nudged_ || !commands_.empty(); });
  }
}

bool MpiWorld::run_commands() {
  std::deque<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (auto& command : commands) command();
  return !commands.empty();
}

bool MpiWorld::test_operations() {
  const auto before = Clock::now();
  const auto finished = outstanding_.test();
  const auto after = Clock::now();
  for (const auto& operation : finished)
    if (operation->on_complete) operation->on_complete();
  if (!finished.empty()) {
    const std::lock_guard lock(mutex_);
    for (const auto& operation : finished) {
      operation->completed = after;
      operation->done = true;
    }
    completed_.notify_all();
  }
  return !finished.empty() || after - before > busy_test;
}

void MpiWorld::enqueue(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.notify_one();
}

std::shared_ptr<Operation> MpiWorld::start(std::vector<Operation::Post> stages) {
  auto operation = std::make_shared<Operation>();
  operation->stages = std::move(stages);
  enqueue([this, operation] { outstanding_.post(operation); });
  return operation;
}

void MpiWorld::wait(Operation& operation, const char* phase) {
  const PhaseScope scope(watchdog_, phase);
  std::unique_lock lock(mutex_);
  ++waiting_;
  nudged_ = true;
  wake_.notify_one();
  completed_.wait(lock, [&] { return operation.done; });
  --waiting_;
  if (!operation.error.empty()) throw CommError(fmt::format("{}: {}", phase, operation.error));
}

bool MpiWorld::done(const Operation& operation) const {
  const std::lock_guard lock(mutex_);
  return operation.done;
}

void MpiWorld::release(std::function<void()> free_handles) {
  enqueue([this, free_handles = std::move(free_handles)] {
    if (roll_call_) free_handles();
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
  call("finalize", [this] { shut_down(); });
}

void MpiWorld::shut_down() {
  watchdog_.set_roll_call(nullptr);
  watchdog_.set_abort(nullptr);  // from here an abort is a plain _exit
  roll_call_->cancel();
  while (outstanding_.requests() > 0) outstanding_.test();
  roll_call_.reset();
  selector_->close();
  MPI_Comm_free(&roll_communicator_);
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

double MpiWorld::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (pthread_getcpuclockid(native_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::string MpiWorld::ask_roll_call() {
  // Shared, because the answer may come after this thread has given up.
  auto answer = std::make_shared<std::promise<std::string>>();
  auto text = answer->get_future();
  enqueue([this, answer] {
    if (!roll_call_) return answer->set_value("  no roll-call: MPI is being finalised");
    roll_call_->ask([answer](const std::string& report) { answer->set_value(report); });
  });
  if (text.wait_for(RollCall::patience + std::chrono::milliseconds{500}) ==
      std::future_status::ready)
    return text.get();
  return "  no roll-call: this rank's own MPI thread hangs inside an MPI call";
}

void MpiWorld::abort(int exit_code) {
  const auto leave = [exit_code] { MPI_Abort(MPI_COMM_WORLD, exit_code); };
  if (pthread_equal(pthread_self(), native_)) return leave();
  enqueue(leave);
}

}  // namespace scalemark
