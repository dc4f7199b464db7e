// Runs a sweep: every point and repeat of a plan is a separate launch, in random order. A journal
// lets a sweep that was interrupted continue where it was.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/sweep_plan.hpp"
#include "error.hpp"
#include "launch/launch.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {

/// The launches of one point by this build.
struct SweepResult {
  std::string title;
  /// The launches that have succeeded: record, unit, ranks, work and place in the sweep of each,
  /// without settings.
  std::vector<MeasuredLaunch> launches;
  int failed = 0;
};

struct SweepEnd {
  /// The code is ok, or the most severe code of a launch that failed; `failed` also where an
  /// earlier sweep has recorded the failure.
  ExitCode code = ExitCode::ok;
  std::vector<SweepResult> results;  ///< a point each
  bool stopped = false;              ///< from outside, before all were launched
};

/// Says which launches that have ended are launched again.
struct LaunchedAgain {
  bool failed = false;  ///< what the journal says has failed
  bool lost = false;    ///< what is done, but has no record any more that can be read
};

/// Runs a sweep. `folder` holds journal.jsonl, runs/ and logs/. A failing launch does not stop the
/// others. Throws ResultError before anything is launched, naming the records, where some are lost
/// and not to be measured again.
SweepEnd run_sweep(const SweepPlan& plan, const std::filesystem::path& folder,
                   const LaunchedAgain& again, LaunchProgress& progress);

/// Prints the command of every launch in its order.
void print_sweep(const SweepPlan& plan, const std::filesystem::path& folder);

}  // namespace scalemark
