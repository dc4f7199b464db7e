// `scalemark scale` outside a launcher: how many ranks, the launch, and what to say when the job
// dies.
#pragma once

#include <string>
#include <vector>

#include "config/load.hpp"
#include "error.hpp"
#include "launch/placement.hpp"

namespace scalemark {

struct ScaleLaunch {
  std::vector<std::int64_t> ranks;  ///< points of the curve
  int largest = 1;                  ///< ranks to launch
  Placement placement;              ///< the same at every point
};

/// Resolves `--ranks auto` and the cores of a rank.
ScaleLaunch plan_scale(const RunConfig& config, const Resources& resources);

/// Launches `scalemark scale ARGUMENTS` on every rank and watches it. Where the job dies without a
/// word, writes what it had so far to --output, as failed, with the reason.
ExitCode supervise_scale(const LoadedConfig& loaded, const std::vector<std::string>& arguments);

}  // namespace scalemark
