// Starts the ranks of a command that is called outside a launcher: `scale`, and `run`, `infer` and
// `preflight` with --ranks. It decides how many there are, builds the launch, and reports a job
// that dies.
#pragma once

#include <string>
#include <vector>

#include "config/load.hpp"
#include "error.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "result/handover.hpp"

namespace scalemark {

struct PlannedRanks {
  std::vector<std::int64_t> ranks;    ///< points of the curve; else the one number
  int largest = 1;                    ///< ranks to launch
  std::optional<int> ranks_per_node;  ///< that the launcher is asked for
  Placement placement;                ///< the same at every point
};

/// Resolves `--ranks auto` and the cores of a rank.
PlannedRanks plan_ranks(const ResolvedConfig& config, const Resources& resources);

struct RankJob {
  PlannedRanks points;
  LaunchRequest request;
};

/// Returns the job that runs `scalemark COMMAND ARGUMENTS` on every rank; without --ranks that is
/// one, which no launcher starts. Throws ConfigError where
/// a batch does not divide.
RankJob rank_job(const LoadedConfig& loaded, const std::vector<std::string>& arguments);

/// Launches the job and watches it. Where it dies without a message, the function writes to
/// --output what the job had so far, if only that it failed, with the reason. `measured`, unless
/// null, receives the records of what was measured.
ExitCode supervise_ranks(const LoadedConfig& loaded, RankJob job,
                         PartialResults* measured = nullptr);

}  // namespace scalemark
