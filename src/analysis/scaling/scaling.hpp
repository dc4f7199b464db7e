// What a curve needs of run records, its speedup and efficiency, and how two curves compare: pure
// functions (formulas in docs/measurements.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "measure/statistics.hpp"
#include "measure/work.hpp"
#include "result/noise_summary.hpp"
#include "result/record_context.hpp"
#include "result/records.hpp"

namespace scalemark {

/// One run of one point in one round, or one launch of it.
struct PointRepeat : Work {  ///< of all measured steps of all ranks, in wall seconds of the loop
  std::string run_id;        ///< id of the run record
  std::string run_path;      ///< relative to the scaling record; empty where no file was asked for
  std::int64_t number = 0;   ///< its round, or the repeat of its sweep, from 1; 0: its place
  double step_seconds_mean = 0;
  double wait_seconds_mean = 0;                 ///< mean over ranks, per step; NaN: not known
  bool baseline = false;                        ///< communicator none
  std::optional<int> resources = std::nullopt;  ///< what the run ran on; unset: unknown
  /// Of training, warm-up included, until the target loss was reached; unset: it was not.
  std::optional<double> target_steps = std::nullopt, target_seconds = std::nullopt;
};

struct PointRuns {
  int ranks = 1;
  std::vector<PointRepeat> repeats;    ///< with communication, by number
  std::vector<PointRepeat> baselines;  ///< without, by number; empty for one rank or --no-baseline
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

/// Until the target loss was reached, mean over the repeats.
struct TargetLoss {
  bool reached = false;  ///< by every repeat; otherwise the means are 0
  double steps = 0;
  double seconds = 0;
};

/// Steps to solution x mean step, and its ratio to the base's.
struct TimeToSolution {
  double seconds = 0;
  double speedup = 0;                    ///< base seconds / seconds
  std::optional<Interval> speedup_ci95;  ///< as that of the speedup; none for the base
  std::optional<double> efficiency;      ///< speedup / (resources / base resources)
};

/// How a point lies to the points beside it.
struct Trend {
  double expected_efficiency = 0;  ///< between its neighbours' efficiencies, linear in log(ranks)
  /// 5 % or more below what is expected, beyond its interval, and below the next larger point:
  /// fewer ranks would do worse with it, more do better.
  bool dip = false;
};

struct ScalingPoint {
  int ranks = 1;
  double throughput = 0;         ///< total units / total seconds of all repeats
  std::optional<Interval> ci95;  ///< Student's t on log throughput over repeats
  double speedup = 0;
  std::optional<Interval>
      speedup_ci95;              ///< Student's t on log ratios paired by number; none for the base
  std::optional<int> resources;  ///< what it ran on
  std::optional<double> efficiency;  ///< speedup / (resources / base resources)
  std::optional<Interval> efficiency_ci95;
  std::optional<Trend> trend;  ///< none at the ends, and where an efficiency is not known
  std::optional<double> baseline_throughput;
  std::optional<double> exposed_seconds;  ///< per step, see exposed_method; none for one rank
  std::optional<Interval> exposed_ci95;   ///< Student's t over the repeats, paired by number
  std::string exposed_method;  ///< "baseline": mean step minus no-communication mean step; "wait":
                               ///< waiting time, where no baseline was measured; empty for one rank
  std::optional<TimeToSolution> solution;
  std::optional<TargetLoss> target;
  std::vector<PointRepeat> repeats;  ///< with communication, then baselines; each in round order
};

struct ScalingCurve {
  std::string unit;
  std::string scaling;  ///< "weak" or "strong"
  int base_ranks = 1;
  double base_throughput = 0;
  std::vector<ScalingPoint> points;  ///< ascending ranks
};

/// Throws RunError, naming point and round, where a point has no repeats, where points or baselines
/// differ in their number of rounds (each measures every point once), or where a repeat has no
/// units or seconds. What efficiency counts are ranks, or the `resources` of the repeats. Launches
/// may have failed: a speedup is of those whose number both points have, or else of all.
ScalingCurve make_scaling_curve(const std::string& unit, const std::string& scaling,
                                std::vector<PointRuns> points,
                                const CurveQuestions& questions = {});

/// With the place of each repeat where it has no number.
std::vector<PointRuns> numbered(std::vector<PointRuns> points);

/// What the repeats of a point ran on; nullopt where one does not know, or where they differ.
std::optional<int> resources_of(const PointRuns& runs, Resource resource);

/// The scaling record (kind "scaling", docs/schema/scaling.schema.json) of one curve. `world_size`:
/// the largest rank count, for the configuration's hash. `noise`: of all its runs. With a status
/// other than ok, points may miss repeats and no throughput is published: the repeats are listed,
/// their run records stand on their own.
Json make_scaling_record(const RecordContext& context, int world_size,
                         const std::vector<PointRuns>& points, const NoiseSummary& noise,
                         const Outcome& outcome, RepeatUnit unit = RepeatUnit::in_process);

/// What a curve needs of a run record, which must have status "ok". `path`: of the run record,
/// relative to the curve. `resource`: what is counted.
PointRepeat point_repeat(const Json& run, const std::string& path, bool baseline,
                         Resource resource = Resource::rank);

/// Throughput of a curve over that of another one, at one rank count.
struct CurveRatio {
  int ranks = 1;
  double ratio = 0;
  /// Student's t on the log ratios of round or repeat k of both; nullopt for one repeat, or where
  /// one has repeats that the other lacks.
  std::optional<Interval> ci95;
};

/// At the rank counts that both scaling records have, ascending. Both must have status "ok".
std::vector<CurveRatio> curve_ratios(const Json& curve, const Json& reference);

/// The divisor of efficiency: ranks, distinct hosts, distinct cores or distinct GPUs of a run
/// record's `ranks`. Cores are the distinct logical CPUs that the ranks may run on, by host,
/// divided by the threads of a core of the recorded machine (1 where unknown). nullopt where a rank
/// does not say what it runs on.
std::optional<int> count_resources(const Json& run, Resource resource);

/// Why count_resources() has nothing to count.
std::string why_uncounted(Resource resource);

}  // namespace scalemark
