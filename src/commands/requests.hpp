// Reads the command lines of `scalemark project` and `scalemark instances`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/projection/projection.hpp"
#include "commands/shared_flags.hpp"
#include "error.hpp"
#include "launch/instances.hpp"

namespace scalemark {

/// What `scalemark project CURVE` shall answer from a cost model fitted to the curve.
struct ProjectRequest {
  std::string curve;  ///< PATH or LABEL=PATH
  ProjectionQuestions questions;
  RecordOutput output;
};

/// Reads the words after `project`. Throws ConfigError where they are wrong.
ProjectRequest read_project_request(std::span<const std::string> arguments);

/// Reads the words after `instances`: its own flags, and all others, which are those of the job.
/// Finds the slots on this machine. Throws ConfigError and EnvironmentError.
InstancesRequest read_instances_request(std::span<const std::string> arguments);

/// Reads a published curve, or what read_labelled_set() reads, as a curve.
MeasuredCurve read_curve(const std::string& argument);

}  // namespace scalemark
