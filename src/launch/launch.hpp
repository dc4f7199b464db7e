// Starts ranks: the command lines of mpirun and srun, the supervisor that watches the processes it
// started, and the interface by which launches are reported while they run.
#pragma once

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "config/sweep_settings.hpp"
#include "error.hpp"

namespace scalemark {

/// Describes a launch.
struct LaunchRequest {
  bool is_bound() const { return binding != Binding::none && !oversubscribe && !binds_itself; }

  Launcher launcher = Launcher::automatic;  ///< automatic: detect_launcher()
  int ranks = 1;
  int cpus_per_rank = 1;
  Binding binding = Binding::core;
  std::optional<int> ranks_per_node;  ///< unset: the launcher fills one node after the other
  std::optional<std::string> hostfile;
  /// The hosts of all ranks, with `ranks_per_node` on each. Where it is empty, the launcher
  /// chooses.
  std::vector<std::string> hosts;
  /// Hosts with the number of ranks of each, one after the other: in place of `hostfile`, `hosts`
  /// and `ranks_per_node`.
  std::vector<std::pair<std::string, int>> ranks_on;
  bool binds_itself = false;         ///< ranks do (platform/slots.hpp): the launcher is not to
  bool direct = false;               ///< one rank here, which needs no launcher
  bool oversubscribe = false;        ///< more ranks than cores: binding is impossible and said so
  std::vector<std::string> forward;  ///< variables that mpirun must carry to other hosts
  /// The variables of this launch alone. A variable without a value is removed.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  bool hydra = false;             ///< mpirun is that of MPICH and its kin: mpiexec.hydra
  std::string mpirun = "mpirun";  ///< with a folder where it is not that of PATH
  /// The words between those of the launcher and the program: flags of srun, or a program that
  /// enters a container (put_in_container()).
  std::vector<std::string> container;
  bool elsewhere = false;  ///< some of the ranks, or all, are to run on other hosts
  bool here = false;       ///< every rank is known to run on this host
  std::vector<std::string>
      program;  ///< program and arguments, each one word, never through a shell
};

/// Returns srun inside a Slurm allocation whose srun offers PMIx, else mpirun.
Launcher detect_launcher(const std::map<std::string, std::string>& environment);

/// Returns whether this build's MPI is MPICH or derived from it, whose ranks only Hydra starts.
bool built_for_hydra();

/// Returns the program that launches: "mpirun", "mpiexec.hydra" or "srun", or the launched program
/// itself where there is no launcher.
std::string launcher_program(const LaunchRequest& request);

/// Returns the exact argv. It contains no variables, since other users could read them there.
/// Binding is always explicit. As root mpirun gets --allow-run-as-root. Throws ConfigError for a
/// host file with srun (the allocation names the hosts).
std::vector<std::string> launch_command(const LaunchRequest& request, bool is_root);

/// Returns the words quoted so that a shell reads back the same words, for --dry-run and messages.
std::string shell_quoted(const std::vector<std::string>& words);

/// Returns what this user would type for the launch.
std::string command_line(const LaunchRequest& request);

struct SupervisedExit {
  int raw_status =
      0;  ///< exit status of the launcher, 128+n for a signal, 127 where it can't be started
  bool stopped_by_us = false;  ///< a signal reached us
  bool overdue = false;        ///< it ran longer than limit_seconds
  bool hung = false;           ///< nothing was heard of it any more
};

/// Says how a job is watched.
struct Supervision {
  double grace_seconds = 10;             ///< that a job which was asked to stop may take
  std::function<bool()> listens = {};    ///< all ranks take a stop. Unset: from the start
  std::function<bool()> has_heard = {};  ///< the job knows that it is to stop: until then it is
                                         ///< asked again every second. Unset: it is asked once
  std::function<bool()> has_ended = {};  ///< asked once a second: the job says that it is over
  std::function<bool()> has_hung = {};   ///< asked whenever we wake: the job does not live any more
  double end_seconds = 10;  ///< that its launcher may take from then on: mpirun waits for a daemon
                            ///< behind a dead link for as long as TCP does
  std::optional<double> limit_seconds = {};       ///< that the job may take
  std::optional<double> silence_seconds = {};     ///< that nothing may be heard of it: run_jobs()
  std::string output = {};                        ///< file of its stdout and stderr; empty: ours
  std::function<std::vector<int>()> inputs = {};  ///< descriptors that wake us when they have input
  std::function<void()> on_wake = {};  ///< called whenever we wake, at least once a second
  /// What a job that has succeeded leaves running goes on, as a monitor that it was to start.
  bool keeps_daemons = false;
};

/// Runs a command as a child in its own process group, passes stdout and stderr through, gives it
/// an empty stdin, and leaves no process of it behind: those that it has started, and no others
/// that happen to be children of this process. SIGTERM, SIGINT, SIGHUP and SIGUSR1, but for those
/// that our parent had us ignore, reach the job as SIGUSR1 (mpirun and srun pass it to the ranks:
/// the agreed stop; on SIGTERM mpirun would kill within a second). When it still runs after the
/// grace, or at a second signal, it gets SIGTERM, and five seconds later, or at a third signal,
/// SIGKILL; likewise a job that is over, overdue or hung.
SupervisedExit supervise(const std::vector<std::string>& command, const Supervision& how);

/// A process that is watched together with others.
struct ChildProcess {
  std::vector<std::string> command;
  std::string output = {};  ///< file of its stdout and stderr; empty: `streams`
  /// This function is called in the child. Where it throws, the child reports the error and ends
  /// with its exit code.
  std::function<void()> before_exec = {};
  std::array<int, 2> streams{STDOUT_FILENO, STDERR_FILENO};  ///< descriptors of ours
};

struct SupervisedExits {
  std::vector<int> raw_status;  ///< of each process, as in SupervisedExit
  /// The first process that ended with a status other than 0 without having been asked to stop.
  std::optional<std::size_t> first_failed;
  std::vector<bool> ran_out;   ///< of each process: it still ran when limit_seconds were over
  bool stopped_by_us = false;  ///< a signal reached us
  bool overdue = false;
  bool hung = false;
};

/// Supervises processes that run side by side, each as supervise() does. A stop reaches all of
/// them, and where one fails the others get SIGTERM after `end_seconds`.
SupervisedExits supervise_all(const std::vector<ChildProcess>& processes, const Supervision& how);

/// During its lifetime, a signal that comes between two supervised jobs stops the second one
/// instead of this process, which would leave no record.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

/// Returns "killed by signal 9 (KILL)", or "ended with status 213" for a status that no signal has.
std::string end_words(int raw_status);

/// Returns whether the status is 128 + a signal. Launchers have statuses of their own above these.
bool is_signal_status(int raw_status);

/// Returns what a launcher's exit means. `agreed_code` is the code on which the ranks agreed, where
/// they could still report it; it then holds. Otherwise codes that only the engine uses are
/// returned, a rank killed by a signal (128+n) is `failed`, and everything else is the launcher's,
/// `environment`: mpirun's 1 (root refused, too few slots) and 2 (a host that cannot be reached;
/// ranks say why they end with 2). Once its ranks have `begun`, that is `failed`: MPI itself ends
/// them with codes of its own, as where a connection is closed.
ExitCode map_launcher_exit(const SupervisedExit& exit, std::optional<int> agreed_code,
                           bool begun = false);

// The interface below reports launches while they run. report/ implements it for the terminal.

class LaunchProgress {
 public:
  virtual ~LaunchProgress() = default;
  /// Announces how many launches follow.
  virtual void expect(std::size_t launches) = 0;
  virtual void start(const std::string& title, std::int64_t repeat) = 0;
  /// Reports the seconds of the launch that was started last. `outcome` is its rate, or the reason
  /// why it has none.
  virtual void finish(double seconds, const std::string& outcome) = 0;
};

}  // namespace scalemark
