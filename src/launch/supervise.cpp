// Implements the supervisor: it starts children, passes signals on, waits for their end and leaves
// nothing behind. It is single-threaded: all signals are blocked and taken one by one from a
// signalfd, so there are no handlers and no races.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "config/text.hpp"
#include "launch/launch.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "platform/processes.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kKillAfterSeconds = 5;  // from SIGTERM to SIGKILL
constexpr double kStopFollowsSeconds = 1;
constexpr double kAskAgainSeconds = 1;
constexpr double kAskBlindlySeconds = 20;  // of a job whose ranks cannot say that they listen
/// Names the jobs that a process belongs to, the innermost one last: "123.4567/234.5678/".
constexpr const char* kJobVariable = "SMK_INTERNAL_JOB";

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Blocks the supervisor's signals and adopts orphans during its lifetime.
class Guard {
 public:
  Guard() {
    ::signal(SIGCHLD, SIG_DFL);  // the kernel would reap the children of one who ignores it
    sigemptyset(&ours_);
    sigaddset(&ours_, SIGCHLD);
    for (const int signal : kStopSignals)
      if (!is_ignored(signal)) sigaddset(&ours_, signal);
    signals_ = signalfd(-1, &ours_, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals_ < 0)
      throw EnvironmentError(fmt::format("cannot watch signals: {}", std::strerror(errno)));
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Guard() {
    prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    close(signals_);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Returns the mask with which children run: they receive the signals that the supervisor blocks.
  /// mpirun would report a SIGXFSZ on stderr, and where that is the file that has grown too large
  /// it would get the next one.
  sigset_t mask_of_children() const {
    sigset_t mask = before_;
    sigaddset(&mask, SIGXFSZ);
    sigdelset(&mask, SIGCHLD);
    for (const int signal : kStopSignals) sigdelset(&mask, signal);
    return mask;
  }

  /// Returns the next signal, or 0 when `until` has passed or one of `inputs` has something to
  /// read.
  int next_signal(Clock::time_point until, const std::vector<int>& inputs = {}) const {
    std::vector<pollfd> watched{{signals_, POLLIN, 0}};
    for (const int input : inputs) watched.push_back({input, POLLIN, 0});
    const auto left =
        std::max(std::chrono::nanoseconds(until - Clock::now()), std::chrono::nanoseconds(0));
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                           left.count() % 1'000'000'000};
    ppoll(watched.data(), watched.size(), &timeout, nullptr);
    signalfd_siginfo signal{};
    return read(signals_, &signal, sizeof signal) == sizeof signal
               ? static_cast<int>(signal.ssi_signo)
               : 0;
  }

 private:
  sigset_t ours_{}, before_{};
  int signals_ = -1, was_subreaper_ = 0;
};

/// Redirects stdout and stderr of the child, and stdin from nothing: a launcher would read what is
/// meant for whoever called this program, as the rest of a script.
bool redirect(const ChildProcess& process) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return false;
  auto [out, err] = process.streams;
  if (!process.output.empty()) out = err = open_own(process.output, O_WRONLY | O_TRUNC);
  return out >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0;
}

/// Returns the words for execvp(). They are made before the fork, since between it and the exec
/// nothing may be allocated where other threads (Relay's) may hold an allocator's lock.
std::vector<char*> argv_of(const ChildProcess& process) {
  std::vector<char*> argv;
  for (const std::string& word : process.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

[[noreturn]] void become(const ChildProcess& process, char* const* argv, const sigset_t& mask,
                         pid_t supervisor, const std::string& job) {
  setpgid(0, 0);
  setenv(kJobVariable, job.c_str(), 1);
  if (!redirect(process)) {
    say_error(fmt::format("cannot write {}: {}", process.output, std::strerror(errno)));
    _exit(static_cast<int>(ExitCode::result));
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would watch the job after the supervisor
  if (getppid() != supervisor) _exit(127);
  ::signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  try {
    if (process.before_exec) process.before_exec();
  } catch (const std::exception& error) {
    say_error(error.what());
    std::fflush(stderr);
    _exit(static_cast<int>(exit_code_of(error)));
  }
  execvp(argv[0], argv);
  say_error(fmt::format("cannot start {}: {}", argv[0], std::strerror(errno)));
  _exit(127);
}

/// Which processes are of a job. This process may have other children, such as those of the script
/// that it has taken the place of by exec.
class Membership {
 public:
  Membership() {
    const char* outer = std::getenv(kJobVariable);
    name_ = fmt::format("{}{}.{}/", outer ? outer : "", getpid(),
                        Clock::now().time_since_epoch().count());
  }
  const std::string& name() const { return name_; }
  void add_group(pid_t group) { groups_.push_back(group); }

  /// Kills what the job has left behind. Orphans are adopted one generation at a time, so it
  /// repeats until none is left.
  void kill_leftovers() const {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (Clock::now() < deadline) {
      bool any = false;
      for (const ProcessStat& process : processes())
        if (process.parent == getpid() && has(process.pid)) {
          any = true;
          kill(process.pid, SIGKILL);
        }
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (!any) return;
      usleep(1000);
    }
  }

 private:
  bool has(pid_t pid) const {
    if (std::ranges::find(groups_, getpgid(pid)) != groups_.end()) return true;
    std::ifstream file(fmt::format("/proc/{}/environ", pid));
    if (!file && errno == EACCES) return false;  // another user's
    const std::string begin = std::string(kJobVariable) + "=" + name_;
    std::string variable;
    // One that is dying has no environment any more, but still its locks: it is waited for.
    if (!std::getline(file, variable, '\0')) return true;
    do
      if (variable.starts_with(begin)) return true;
    while (std::getline(file, variable, '\0'));
    return false;
  }

  std::string name_;
  std::vector<pid_t> groups_;
};

/// Returns whether a stop follows the end of a launcher. Whoever stops a job from outside often
/// signals each of its processes, as Slurm does at a requeue, so the launcher may be gone before
/// the signal reaches the supervisor.
bool stop_follows(const Guard& guard) {
  const auto until = Clock::now() + to_duration(kStopFollowsSeconds);
  while (Clock::now() < until)
    if (const int signal = guard.next_signal(until); signal != 0 && signal != SIGCHLD) return true;
  return false;
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The processes of a job. Those that have ended are sent no more signals.
class Children {
 public:
  Children(const std::vector<ChildProcess>& processes, const sigset_t& mask, Membership& job)
      : statuses_(processes.size(), 0) {
    std::fflush(nullptr);
    const pid_t supervisor = getpid();
    for (const ChildProcess& process : processes) {
      const std::vector<char*> argv = argv_of(process);
      const pid_t child = fork();
      if (child < 0) {
        const int error = errno;
        job.kill_leftovers();
        throw EnvironmentError(fmt::format("cannot start a process: {}", std::strerror(error)));
      }
      if (child == 0) become(process, argv.data(), mask, supervisor, job.name());
      setpgid(child, child);  // also here: whoever comes first
      running_.push_back(child);
      job.add_group(child);
    }
  }

  /// Collects every ended child, adopted ones too. `asked` says that they were told to end.
  void reap(bool asked) {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = std::find(running_.begin(), running_.end(), pid);
      if (found == running_.end()) continue;
      const auto index = static_cast<std::size_t>(found - running_.begin());
      *found = 0;
      statuses_[index] = exit_status(status);
      if (status != 0 && !asked && !first_failed_) first_failed_ = index;
    }
  }
  bool any_run() const {
    return std::ranges::any_of(running_, [](pid_t pid) { return pid > 0; });
  }
  std::vector<bool> running() const {
    std::vector<bool> runs;
    for (const pid_t pid : running_) runs.push_back(pid > 0);
    return runs;
  }
  void signal(int number) const {
    for (const pid_t pid : running_)
      if (pid > 0) kill(pid, number);
  }
  void signal_groups(int number) const {
    for (const pid_t pid : running_)
      if (pid > 0) kill(-pid, number);
  }
  const std::vector<int>& statuses() const { return statuses_; }
  std::optional<std::size_t> first_failed() const { return first_failed_; }

 private:
  std::vector<pid_t> running_;  ///< 0: has ended
  std::vector<int> statuses_;
  std::optional<std::size_t> first_failed_;
};

/// Decides which signal a job that was asked to stop gets next, and when.
class Stopping {
 public:
  Stopping(const Children& children, const Supervision& how) : children_(children), how_(how) {}

  bool begun() const { return stage_ != Stage::running; }
  Clock::time_point deadline() const { return deadline_; }

  /// Takes a signal to the supervisor: the first asks the ranks to stop, the next ones insist.
  void request() {
    if (stage_ != Stage::running) return escalate();
    advance(Stage::asked, how_.grace_seconds);
    ask();
  }
  /// Asks again, since a launcher that is just starting loses the signals that it is sent.
  void ask_again() {
    if (stage_ == Stage::asked && last_asked_ && how_.has_heard &&
        Clock::now() >= *last_asked_ + to_duration(kAskAgainSeconds) && !how_.has_heard())
      ask();
  }
  /// Gives the launcher some seconds to end, after the job has reported that it is over.
  void expect_end(double seconds) {
    if (stage_ == Stage::running) advance(Stage::asked, seconds);
  }
  void escalate() {
    if (stage_ == Stage::asked) {
      children_.signal_groups(SIGTERM);
      children_.signal_groups(SIGCONT);  // a stopped job would not notice
    } else {
      children_.signal_groups(SIGKILL);
    }
    advance(Stage::told, kKillAfterSeconds);
  }

 private:
  enum class Stage { running, asked, told };
  /// Asks the job to stop, but not before the ranks listen: the signal would kill one of them while
  /// the others wait for it in MPI_Init, where Slurm's daemon of the step can hang for good.
  void ask() {
    last_asked_ = Clock::now();
    if (!how_.listens || how_.listens() || *last_asked_ >= born_ + to_duration(kAskBlindlySeconds))
      children_.signal(SIGUSR1);
  }
  void advance(Stage stage, double seconds) {
    stage_ = stage;
    deadline_ = Clock::now() + to_duration(seconds);
  }
  const Children& children_;
  const Supervision& how_;
  Stage stage_ = Stage::running;
  std::optional<Clock::time_point> last_asked_;
  Clock::time_point born_ = Clock::now(), deadline_ = Clock::time_point::max();
};

}  // namespace

SupervisedExits supervise_all(const std::vector<ChildProcess>& processes, const Supervision& how) {
  const Guard guard;
  Membership job;
  Children children(processes, guard.mask_of_children(), job);
  Stopping stopping(children, how);
  const auto limit =
      how.limit_seconds ? Clock::now() + to_duration(*how.limit_seconds) : Clock::time_point::max();
  SupervisedExits exits;
  exits.ran_out.assign(processes.size(), false);
  while (children.reap(stopping.begun()), children.any_run()) {
    if (children.first_failed() && !stopping.begun()) {
      if ((exits.stopped_by_us = stop_follows(guard)))
        stopping.request();
      else
        stopping.expect_end(how.end_seconds);
    }
    // Wakes once a second too, so that no lost wake-up can hang the job.
    const auto until =
        std::min({stopping.deadline(), limit, Clock::now() + std::chrono::seconds(1)});
    const int signal = guard.next_signal(until, how.inputs ? how.inputs() : std::vector<int>());
    if (signal != 0 && signal != SIGCHLD) {
      if (how.listens && !stopping.begun())
        say_info("stopping after this step; a second signal ends it at once");
      exits.stopped_by_us = true;
      stopping.request();
    } else if (signal == 0 && Clock::now() >= stopping.deadline()) {
      stopping.escalate();
    }
    stopping.ask_again();
    if (how.on_wake) how.on_wake();
    if (!stopping.begun() && Clock::now() >= limit) {
      exits.overdue = true;
      exits.ran_out = children.running();
      stopping.expect_end(0);
    }
    if (!stopping.begun() && how.has_ended && how.has_ended()) stopping.expect_end(how.end_seconds);
    if (!stopping.begun() && how.has_hung && how.has_hung()) {
      exits.hung = true;
      stopping.expect_end(0);
    }
  }
  if (children.first_failed() && !stopping.begun()) exits.stopped_by_us = stop_follows(guard);
  const bool succeeded = !children.first_failed() && !stopping.begun();
  if (!how.keeps_daemons || !succeeded) job.kill_leftovers();
  exits.raw_status = children.statuses();
  exits.first_failed = children.first_failed();
  return exits;
}

SupervisedExit supervise(const std::vector<std::string>& command, const Supervision& how) {
  std::vector<ChildProcess> processes(1);
  processes.front().command = command;
  processes.front().output = how.output;
  const SupervisedExits exits = supervise_all(processes, how);
  return {exits.raw_status.front(), exits.stopped_by_us, exits.overdue, exits.hung};
}

HeldSignals::HeldSignals() {
  const sigset_t held = stop_signal_set();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  const sigset_t held = stop_signal_set();
  const timespec at_once{};
  while (sigtimedwait(&held, nullptr, &at_once) > 0) {  // it came too late to stop anything
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace scalemark
