// What a curve needs of run records, its speedup and efficiency, and how two curves compare: pure
// functions (formulas in docs/measurements.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "measure/statistics.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "result/noise_summary.hpp"
#include "result/record_context.hpp"

namespace scalemark {

/// A repeat as the record has it, whose `repeat` may still be 0: its place; and what else a curve
/// needs of its run.
struct PointRepeat : record::CurveRepeat {
  double step_seconds_mean = 0;
  double wait_seconds_mean = 0;                 ///< mean over ranks, per step; NaN: not known
  std::optional<int> resources = std::nullopt;  ///< what the run ran on; unset: unknown
  /// Steps and seconds of training, warm-up included, until the target loss was reached; unset: it
  /// was not.
  std::optional<double> target_steps = std::nullopt, target_seconds = std::nullopt;
};

struct PointRuns {
  int ranks = 1;
  std::vector<PointRepeat> repeats;    ///< with communication, by number
  std::vector<PointRepeat> baselines;  ///< without, by number; empty for one rank or --no-baseline
  std::map<LeaveOut, std::vector<PointRepeat>> without = {};  ///< one collective; likewise

  /// Returns the list of those that leave out as much.
  std::vector<PointRepeat>& of(bool baseline, LeaveOut leave_out);
};

/// What a curve is asked beside throughput and speedup.
struct CurveQuestions {
  Resource resource = Resource::rank;
  /// Steps to solution; unset: no time to solution.
  std::optional<double> solution_steps = std::nullopt;
  std::optional<double> base_solution_steps = std::nullopt;  ///< unset: solution_steps
  bool target_loss = false;                                  ///< runs end at a target loss
  RepeatUnit repeat_unit = RepeatUnit::in_process;
};

/// The points by ascending ranks, all but their batches; the first is the base. What is unknown
/// says why. Throws RunError, naming point and round, where a point has no repeats, where points or
/// baselines differ in their number of rounds (each measures every point once), or where a repeat
/// has no units or seconds. What efficiency counts are ranks, or the `resources` of the repeats.
/// Launches may have failed: a speedup is of those whose number both points have, or else of all.
std::vector<record::ScalingPoint> scaling_points(std::vector<PointRuns> points,
                                                 const CurveQuestions& questions = {});

/// Returns the points with the place of each repeat where it has no number.
std::vector<PointRuns> numbered(std::vector<PointRuns> points);

/// What the repeats of a point ran on; nullopt where one does not know, or where they differ.
std::optional<int> resources_of(const PointRuns& runs, Resource resource);

/// The record of a curve in one launch. `world_size`: the largest rank count, for the
/// configuration's hash. `noise`: of all its runs. With a status other than ok, points may miss
/// repeats and no throughput is published: the repeats are listed, their run records stand on their
/// own.
ScalingCurve make_scaling_record(const RecordContext& context, int world_size,
                                 const std::vector<PointRuns>& points, const NoiseSummary& noise,
                                 const Outcome& outcome);

/// What such a record says of its points, and what follows from its configuration; it has its
/// envelope, its preflight and the unit of its repeats already.
void set_points(ScalingCurve& curve, const ResolvedConfig& config, int world_size,
                std::vector<PointRuns> points, const NoiseSummary& noise);

/// What a curve needs of a run, which must have status "ok"; ResultError where it lacks what such a
/// run has. `path`: of the run record, relative to the curve. `resource`: what is counted.
PointRepeat point_repeat(const RunResult& run, const std::string& path, bool baseline,
                         Resource resource = Resource::rank);

/// Throughput of a curve over that of another one, at one rank count.
struct CurveRatio {
  std::int64_t ranks = 1;
  double ratio = 0;
  /// Student's t on the log ratios of round or repeat k of both; nullopt for one repeat, or where
  /// one has repeats that the other lacks.
  std::optional<Interval> ci95;
};

/// At the rank counts that both curves have, ascending. Both must have status "ok".
std::vector<CurveRatio> curve_ratios(const ScalingCurve& curve, const ScalingCurve& reference);

/// The divisor of efficiency: ranks, distinct hosts, distinct cores or distinct GPUs of a run.
/// Cores are the distinct logical CPUs that the ranks may run on, by host, divided by the threads
/// of a core of the recorded machine (1 where unknown). nullopt where a rank does not say what it
/// runs on.
std::optional<int> count_resources(const RunResult& run, Resource resource);

/// Why count_resources() has nothing to count.
std::string why_uncounted(Resource resource);

}  // namespace scalemark
