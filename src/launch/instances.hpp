// Instances: ordinary runs or inferences, side by side on disjoint parts of this machine or of
// several, started together; each is measured alone too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/instances/instances.hpp"
#include "error.hpp"
#include "launch/progress.hpp"

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

/// Measures and writes the record to --output, and to stdout with --json; hands it to `report`.
/// Exit codes: ok; the most severe code of a launch that failed, `failed` where it was stopped. A
/// failing launch does not stop the others.
ExitCode run_instances(const InstancesRequest& request, LaunchProgress& progress,
                       const std::function<void(const Json& record)>& report);

}  // namespace scalemark
