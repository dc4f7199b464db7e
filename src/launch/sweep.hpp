// A sweep: every point and repeat of a plan a launch of its own, in random order, journalled, so
// that one that was interrupted goes on where it was.
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
  /// That have succeeded: record, unit, ranks, work and place in the sweep of each, no settings.
  std::vector<MeasuredLaunch> launches;
  int failed = 0;
};

struct SweepEnd {
  /// ok; the most severe code of a launch that failed, `failed` also where an earlier sweep has
  /// recorded the failure.
  ExitCode code = ExitCode::ok;
  std::vector<SweepResult> results;  ///< a point each
};

/// What of the launches that have ended is launched again.
struct LaunchedAgain {
  bool failed = false;  ///< what the journal says has failed
  bool lost = false;    ///< what is done, but has no record any more that can be read
};

/// `folder`: of journal.jsonl, runs/ and logs/. A failing launch does not stop the others.
/// ResultError before anything is launched, naming the records, where some are lost and not to be
/// measured again.
SweepEnd run_sweep(const SweepPlan& plan, const std::filesystem::path& folder,
                   const LaunchedAgain& again, LaunchProgress& progress);

/// Prints the command of every launch in its order.
void print_sweep(const SweepPlan& plan, const std::filesystem::path& folder);

}  // namespace scalemark
