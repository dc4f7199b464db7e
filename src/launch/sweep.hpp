// `scalemark sweep PLAN.json --output DIR`: every point and repeat a launch of its own, in random
// order, journalled, so that a sweep that was interrupted goes on where it was.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/sweep_plan.hpp"
#include "error.hpp"

namespace scalemark {

struct SweepRequest {
  SweepPlan plan;
  std::string output;         ///< folder: journal.jsonl, runs/, logs/
  bool dry_run = false;       ///< print the commands, start nothing
  bool retry_failed = false;  ///< launch again what the journal says has failed
};

/// The words after `sweep`; flags of the launch beat the plan. ConfigError where they are wrong.
SweepRequest read_sweep_request(std::span<const std::string> arguments);

std::string sweep_help();

/// Exit codes: ok; the most severe code of a launch that failed, `failed` also where an earlier
/// sweep has recorded the failure. A failing launch does not stop the others.
ExitCode run_sweep(const SweepRequest& request);

}  // namespace scalemark
