// `scalemark instances`: ordinary runs or inferences of one rank each, side by side on disjoint
// parts of this machine, started together; each is measured alone too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/instances.hpp"
#include "error.hpp"

namespace scalemark {

struct InstancesRequest {
  InstancesPlan plan;
  std::vector<std::string> arguments;  ///< of the job, as they were given
  std::optional<Injection> inject;     ///< of the command line; its rank is the number of a slot
  double launch_timeout = 1800;        ///< seconds that the instances of one launch may take
  bool dry_run = false;                ///< print slots and commands, start nothing
};

/// The words after `instances`: its own flags, and all others those of the job. Finds the slots on
/// this machine. Throws ConfigError and EnvironmentError.
InstancesRequest read_instances_request(std::span<const std::string> arguments);

std::string instances_help(std::span<const std::string> arguments);

/// Exit codes: ok; the most severe code of a launch that failed, `failed` where it was stopped. A
/// failing launch does not stop the others.
ExitCode run_instances(const InstancesRequest& request);

}  // namespace scalemark
