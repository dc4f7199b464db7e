// Reads the command line of `scalemark instances`.
#pragma once

#include <span>
#include <string>

#include "launch/instances.hpp"

namespace scalemark {

/// Reads the words after `instances`: its own flags, and all others, which are those of the job.
/// Finds the slots on this machine. Throws ConfigError and EnvironmentError.
InstancesRequest read_instances_request(std::span<const std::string> arguments);

}  // namespace scalemark
