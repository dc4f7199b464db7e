// Starting ranks: mpirun and srun command lines, and the supervisor that watches what it started.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// What a launch asks for.
struct LaunchRequest {
  Launcher launcher = Launcher::automatic;  ///< automatic: srun inside a Slurm allocation with PMIx, else mpirun
  int ranks = 1;
  int cpus_per_rank = 1;
  std::optional<std::string> hostfile;
  bool oversubscribe = false;               ///< more ranks than cores: binding is impossible and said so
  std::vector<std::string> program;         ///< program and arguments, each one word, never through a shell
};

/// The exact argv. Binding is always explicit; as root mpirun gets --allow-run-as-root.
std::vector<std::string> launch_command(const LaunchRequest& request, bool is_root);
/// For --dry-run and messages: quoted so that a shell reads back the same words.
std::string shell_quoted(const std::vector<std::string>& words);

/// Runs a command as a child in its own process group, passes stdin/stdout/stderr through, forwards SIGTERM, SIGINT and SIGUSR1
/// to the job as SIGUSR1 (mpirun and srun pass it to the ranks: the agreed stop; mpirun would kill within a second on SIGTERM),
/// after a grace period as SIGTERM then SIGKILL; leaves no process behind. Returns the mapped exit code: the engine's own
/// codes pass through only when `agreed_code` (e.g. read from the journal) confirms; launcher failures are 7, a killed rank 4.
struct SupervisedExit {
  int raw_status = 0;      ///< exit status of the launcher, 128+n for a signal
  bool stopped_by_us = false;
};
SupervisedExit supervise(const std::vector<std::string>& command, double grace_seconds);

}  // namespace scalemark
