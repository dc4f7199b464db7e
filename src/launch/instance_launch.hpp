// One launch of instances: their processes on their slots, the gate that lets them go together, and
// what became of each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/instances.hpp"
#include "launch/launch.hpp"

namespace scalemark {

/// How the ranks of the instance on a slot are started: by a launcher on exactly its hosts, unless
/// it is one rank on this one. Its program is `scalemark run ...` or `scalemark infer ...`: the
/// arguments of the job, then what the supervisor decides.
LaunchRequest instance_request(const InstancesRequest& request, std::size_t slot,
                               const std::filesystem::path& record);

struct LaunchedInstances {
  InstanceLaunch launch;  ///< paths of files are absolute; a log is kept where it is not ok
  ExitCode code = ExitCode::ok;
};

/// Starts an instance on each of `slots`, its record and log in `folder` as NAME-slotN.json and
/// .log, and waits for their end. Where one fails, the others are stopped.
LaunchedInstances launch_instances(const InstancesRequest& request,
                                   const std::vector<std::size_t>& slots,
                                   const std::filesystem::path& folder, const std::string& name);

}  // namespace scalemark
