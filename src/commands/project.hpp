// Reads the command line of `scalemark project CURVE`, which prints what a cost model fitted to a
// curve predicts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/projection/projection.hpp"
#include "commands/shared_flags.hpp"
#include "error.hpp"

namespace scalemark {

struct ProjectRequest {
  std::string curve;  ///< PATH or LABEL=PATH
  ProjectionQuestions questions;
  RecordOutput output;
};

/// Reads the words after `project`. Throws ConfigError where they are wrong.
ProjectRequest read_project_request(std::span<const std::string> arguments);

/// Reads a published curve, or what read_labelled_set() reads, as a curve.
MeasuredCurve read_curve(const std::string& argument);

}  // namespace scalemark
