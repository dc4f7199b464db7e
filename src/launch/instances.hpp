// Runs instances: ordinary runs or inferences, side by side on disjoint parts of this machine or of
// several, started together. Each is measured alone too.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/instances/instances.hpp"
#include "error.hpp"
#include "launch/launch.hpp"

namespace scalemark {

struct InstancesRequest {
  InstancesPlan plan;
  std::vector<std::string> arguments;  ///< of the job, as they were given
  std::optional<Injection> inject;     ///< of the command line; its rank is the number of a slot
  double launch_timeout = 1800;        ///< seconds that the instances of one launch may take
  bool dry_run = false;                ///< print slots and commands, start nothing
};

/// Prints slots and commands.
void print_instances(const InstancesRequest& request);

/// Measures, writes the record to --output, and to stdout with --json, and hands it to `report`.
/// Returns ok, or the most severe code of a launch that failed, which is `failed` where it was
/// stopped. A failing launch does not stop the others.
ExitCode run_instances(const InstancesRequest& request, LaunchProgress& progress,
                       const std::function<void(const InstancesResult&)>& report);

// The functions below make one launch of instances: their processes on their slots, the barrier at
// which they start together, and the outcome of each.

/// Returns how the ranks of the instance on a slot are started: by a launcher on exactly its hosts,
/// unless it is a single rank on this host. Its program is `scalemark run ...` or `scalemark infer
/// ...`: the arguments of the job, then what the supervisor decides.
LaunchRequest instance_request(const InstancesRequest& request, std::size_t slot,
                               const std::filesystem::path& record);

struct LaunchedInstances {
  InstanceLaunch launch;  ///< paths of files are absolute; a log is kept where it is not ok
  ExitCode code = ExitCode::ok;
};

/// Starts an instance on each of `slots`, with its record and log in `folder` as NAME-slotN.json
/// and .log, and waits for the end of all. Where one fails, the others are stopped.
LaunchedInstances launch_instances(const InstancesRequest& request,
                                   const std::vector<std::size_t>& slots,
                                   const std::filesystem::path& folder, const std::string& name);

}  // namespace scalemark
