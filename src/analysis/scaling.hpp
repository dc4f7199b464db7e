// Speedup and efficiency from run records: pure functions (formulas in docs/measurements.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "measure/statistics.hpp"
#include "result/records.hpp"

namespace scalemark {

/// One run of one point in one round.
struct PointRepeat {
  std::string run_id;          ///< id of the run record
  std::string run_path;        ///< relative to the scaling record
  double units = 0;            ///< units of all measured steps of all ranks
  double seconds = 0;          ///< wall seconds of the measured loop
  double step_seconds_mean = 0;
  double wait_seconds_mean = 0;  ///< mean over ranks, per step
  bool baseline = false;       ///< communicator none
};

struct PointRuns {
  int ranks = 1;
  std::vector<PointRepeat> repeats;    ///< with communication, in round order
  std::vector<PointRepeat> baselines;  ///< without, in round order; empty for one rank or --no-baseline
};

struct ScalingPoint {
  int ranks = 1;
  double throughput = 0;                       ///< total units / total seconds of all repeats
  std::optional<Interval> ci95;                ///< Student's t on log throughput over repeats
  double speedup = 0;
  std::optional<Interval> speedup_ci95;        ///< Student's t on log ratios paired by round
  double efficiency = 0;                       ///< speedup / (ranks / base ranks)
  std::optional<Interval> efficiency_ci95;
  std::optional<double> baseline_throughput;
  std::optional<double> exposed_seconds;       ///< mean step minus no-communication mean step
  std::string exposed_method;                  ///< "baseline" or "wait"
  std::vector<PointRepeat> repeats;
};

struct ScalingCurve {
  std::string unit;
  std::string scaling;                         ///< "weak" or "strong"
  int base_ranks = 1;
  double base_throughput = 0;
  std::vector<ScalingPoint> points;            ///< ascending ranks
};

/// Throws RunError where a point has no repeats or repeats differ between points of a round.
ScalingCurve make_scaling_curve(const std::string& unit, const std::string& scaling,
                                const std::vector<PointRuns>& points);

/// The scaling record (kind "scaling"); `config` is the run configuration with origins, `hash` of the base point.
Json make_scaling_record(const ScalingCurve& curve, const Json& config, const std::string& hash,
                         const std::string& repeat_unit, Status status, const std::string& reason);

}  // namespace scalemark
