// `scalemark scale` outside a launcher: how many ranks, the launch, and what to say when the job
// dies.
#pragma once

#include <string>
#include <vector>

#include "config/load.hpp"
#include "error.hpp"
#include "launch/launch.hpp"
#include "launch/placement.hpp"

namespace scalemark {

struct ScaleLaunch {
  std::vector<std::int64_t> ranks;  ///< points of the curve
  int largest = 1;                  ///< ranks to launch
  Placement placement;              ///< the same at every point
};

/// Resolves `--ranks auto` and the cores of a rank.
ScaleLaunch plan_scale(const ResolvedConfig& config, const Resources& resources);

struct ScaleJob {
  ScaleLaunch points;
  LaunchRequest request;
  bool several_hosts = false;
};

/// `scalemark scale ARGUMENTS` on every rank. Throws ConfigError where a batch does not divide.
ScaleJob scale_job(const ResolvedConfig& config, const std::vector<std::string>& arguments);

/// Launches it and watches it. Where the job dies without a word, writes what it had so far, if
/// only that it failed, to --output, with the reason.
ExitCode supervise_scale(const LoadedConfig& loaded, ScaleJob job);

}  // namespace scalemark
