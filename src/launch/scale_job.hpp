// `scalemark scale` outside a launcher: how many ranks, the launch, and what to say when the job
// dies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "error.hpp"

namespace scalemark {

/// What this machine, or the allocation, offers.
struct Resources {
  int cores_per_host = 1;  ///< physical cores within the mask and the CPU quota
  int gpus_per_host = 0;   ///< visible; 0 where the run is for the CPU
  int hosts = 1;           ///< of the host file or the Slurm allocation
};

struct ScaleLaunch {
  std::vector<std::int64_t> ranks;  ///< points of the curve
  int largest = 1;                  ///< ranks to launch
  int cpus_per_rank = 1;            ///< the same at every point
  bool oversubscribe = false;       ///< more ranks than cores on a host
};

/// Resolves `--ranks auto` and the cores of a rank.
ScaleLaunch plan_scale(const RunConfig& config, const Resources& resources);

/// Hosts in an Open MPI host file: lines that are neither empty nor comments, each name once.
/// ConfigError where it does not exist or names none.
int count_hosts(const std::string& hostfile);

/// Launches `scalemark scale ARGUMENTS` on every rank and watches it. Where the job dies without a
/// word, writes what it had so far to --output, as failed, with the reason.
ExitCode supervise_scale(const LoadedConfig& loaded, const std::vector<std::string>& arguments);

}  // namespace scalemark
