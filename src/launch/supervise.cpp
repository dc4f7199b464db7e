// The supervisor: one child, its signals, its end, and nothing left behind.
// Single-threaded: all signals are blocked and taken one by one by sigtimedwait, so there are no
// handlers and no races.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "config/numbers.hpp"
#include "launch/launch.hpp"

namespace scalemark {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kKillAfterSeconds = 5;  // from SIGTERM to SIGKILL
constexpr double kStopFollowsSeconds = 1;

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Blocks the supervisor's signals and adopts orphans for as long as it lives.
class Guard {
 public:
  Guard() {
    sigemptyset(&ours_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&ours_, signal);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Guard() {
    prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  const sigset_t& before() const { return before_; }

  /// The next signal, or 0 when `until` has passed.
  int next_signal(Clock::time_point until) const {
    const auto left =
        std::max(std::chrono::nanoseconds(until - Clock::now()), std::chrono::nanoseconds(0));
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                           left.count() % 1'000'000'000};
    const int signal = sigtimedwait(&ours_, nullptr, &timeout);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t ours_{}, before_{};
  int was_subreaper_ = 0;
};

/// stdout and stderr of this process, from now on.
bool redirect(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

[[noreturn]] void become(const std::vector<std::string>& command, const std::string& output,
                         const sigset_t& mask, pid_t supervisor) {
  setpgid(0, 0);
  if (!output.empty() && !redirect(output)) {
    std::fprintf(stderr, "scalemark: cannot write %s: %s\n", output.c_str(), std::strerror(errno));
    _exit(127);
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would watch the job after the supervisor
  if (getppid() != supervisor) _exit(127);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "scalemark: cannot start %s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

/// Collects every ended child, adopted ones too. True, with `status`, once `child` is among them.
bool reap(pid_t child, int& status) {
  bool ended = false;
  int any = 0;
  for (pid_t pid; (pid = waitpid(-1, &any, WNOHANG)) > 0;)
    if (pid == child) {
      ended = true;
      status = any;
    }
  return ended;
}

/// Processes whose parent is this one (field 4 of /proc/PID/stat; the name before it may hold
/// blanks and parentheses).
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return found;
  while (const dirent* entry = readdir(proc.get())) {
    const auto pid = parse_integer(entry->d_name);
    if (!pid) continue;
    std::ifstream file(fmt::format("/proc/{}/stat", *pid));
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(") ");
    int parent = 0;
    if (name_end != stat.npos && std::sscanf(stat.c_str() + name_end + 4, "%d", &parent) == 1 &&
        parent == getpid())
      found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

/// Kills what the job left behind. Orphans come to us one generation at a time, so it repeats until
/// nobody is left.
void kill_leftovers() {
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < deadline) {
    const std::vector<pid_t> left = children();
    for (const pid_t pid : left) kill(pid, SIGKILL);
    int status = 0;
    reap(0, status);
    if (left.empty()) return;
    usleep(1000);
  }
}

/// Whoever stops a job from outside often signals each of its processes, as Slurm does at a
/// requeue: the launcher may be gone before the signal reaches us.
bool stop_follows(const Guard& guard) {
  const auto until = Clock::now() + to_duration(kStopFollowsSeconds);
  while (Clock::now() < until)
    if (const int signal = guard.next_signal(until); signal != 0 && signal != SIGCHLD) return true;
  return false;
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// What a job that was asked to stop gets next, and when.
class Stopping {
 public:
  Stopping(pid_t child, double grace_seconds) : child_(child), grace_seconds_(grace_seconds) {}

  bool begun() const { return stage_ != Stage::running; }
  Clock::time_point deadline() const { return deadline_; }

  /// A signal to the supervisor: the first asks the ranks to stop, the next insists.
  void request() {
    if (stage_ == Stage::running) {
      kill(child_, SIGUSR1);
      advance(Stage::asked, grace_seconds_);
    } else if (stage_ == Stage::asked) {
      escalate();
    }
  }
  /// The job says that it is over: its launcher gets a while to end.
  void expect_end(double seconds) {
    if (stage_ == Stage::running) advance(Stage::asked, seconds);
  }
  void escalate() {
    if (stage_ == Stage::asked) {
      kill(-child_, SIGTERM);
      kill(-child_, SIGCONT);  // a stopped job would not notice
      advance(Stage::told, kKillAfterSeconds);
    } else {
      kill(-child_, SIGKILL);
      advance(Stage::told, kKillAfterSeconds);
    }
  }

 private:
  enum class Stage { running, asked, told };
  void advance(Stage stage, double seconds) {
    stage_ = stage;
    deadline_ = Clock::now() + to_duration(seconds);
  }
  pid_t child_;
  double grace_seconds_;
  Stage stage_ = Stage::running;
  Clock::time_point deadline_ = Clock::time_point::max();
};

}  // namespace

SupervisedExit supervise(const std::vector<std::string>& command, const Supervision& how) {
  const Guard guard;
  std::fflush(nullptr);
  const pid_t supervisor = getpid();
  const pid_t child = fork();
  if (child < 0)
    throw EnvironmentError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) become(command, how.output, guard.before(), supervisor);
  setpgid(child, child);  // also here: whoever comes first

  Stopping stopping(child, how.grace_seconds);
  const auto limit =
      how.limit_seconds ? Clock::now() + to_duration(*how.limit_seconds) : Clock::time_point::max();
  bool overdue = false;
  int status = 0;
  while (!reap(child, status)) {
    // Wakes once a second too, so that no lost wake-up can hang the job.
    const auto until =
        std::min({stopping.deadline(), limit, Clock::now() + std::chrono::seconds(1)});
    const int signal = guard.next_signal(until);
    if (signal != 0 && signal != SIGCHLD)
      stopping.request();
    else if (signal == 0 && Clock::now() >= stopping.deadline())
      stopping.escalate();
    if (!overdue && !stopping.begun() && Clock::now() >= limit) {
      overdue = true;
      stopping.expect_end(0);
    }
    if (how.has_ended && how.has_ended()) stopping.expect_end(how.end_seconds);
  }
  const bool stopped = stopping.begun() ? !overdue : status != 0 && stop_follows(guard);
  kill_leftovers();
  return {exit_status(status), stopped, overdue};
}

}  // namespace scalemark
