// The scaling record: throughput, speedup and efficiency of one curve over rank counts.
#pragma once

#include "config/run_config.hpp"
#include "measure/work.hpp"
#include "record/measured.hpp"

namespace scalemark {
namespace record {

struct CurveBase {
  std::int64_t ranks = 1;
  Known<double> throughput;
  static void describe(Fields& fields);
};

/// How a point lies to the points beside it.
struct Trend {
  double expected_efficiency = 0;  ///< between its neighbours' efficiencies, linear in log(ranks)
  /// 5 % or more below what is expected, beyond its interval, and below the next larger point:
  /// fewer ranks would do worse with it, more do better.
  bool dip = false;
  static void describe(Fields& fields);
};

/// Until the target loss was reached, mean over the repeats.
struct PointTarget {
  bool reached = false;  ///< by every repeat
  Known<double> steps, seconds;
  static void describe(Fields& fields);
};

/// One run of one point in one round, or one launch of it.
struct CurveRepeat : Work {  ///< of all measured steps of all ranks, in wall seconds of the loop
  std::string run;
  Known<std::string> path;
  std::int64_t repeat = 0;  ///< 0: its record is older than the key
  Known<std::string> created_at;
  bool baseline = false;
  double throughput = 0;
  static void describe(Fields& fields);
};

/// What one collective adds to a step of a curve with --shard.
struct ExposedCollective {
  std::string collective;
  Known<double> exposed_seconds;
  Known<Interval> exposed_ci95;
  std::vector<CurveRepeat> repeats;  ///< without it, in round order
  static void describe(Fields& fields);
};

struct ScalingPoint {
  std::int64_t ranks = 1, batch_size_per_rank = 1, global_batch_size = 1;
  Known<std::int64_t> resources;
  Known<double> throughput;
  Known<Interval> ci95;
  Known<double> speedup;
  Known<Interval> speedup_ci95;
  Known<double> efficiency;
  Known<Interval> efficiency_ci95;
  Known<double> baseline_throughput, exposed_seconds;
  Known<Interval> exposed_ci95;
  Known<Trend> trend;
  Known<std::string> exposed_method;
  Known<std::vector<ExposedCollective>> exposed_collectives;
  Known<double> time_to_solution_seconds, time_to_solution_speedup;
  Known<Interval> time_to_solution_speedup_ci95;
  Known<double> time_to_solution_efficiency;
  Known<PointTarget> target;
  std::vector<CurveRepeat> repeats;  ///< with communication, then baselines; each in round order
  static void describe(Fields& fields);
};

}  // namespace record

struct ScalingCurve : record::Envelope {
  std::string unit;
  Scaling scaling = Scaling::weak;
  Resource resource = Resource::rank;
  RepeatUnit repeat_unit = RepeatUnit::in_process;
  Entries<Known<Json>> settings;
  std::int64_t failed_launches = 0, kept_rounds = 0;
  record::CurveBase base;
  std::vector<record::ScalingPoint> points;
  record::Settings config;
  std::string config_hash;
  Known<record::PreflightReference> preflight;
  Known<record::System> system;
  Known<Entries<std::string>> environment;
  static void describe(Fields& fields);
};

/// The record as it is written.
Json curve_json(const ScalingCurve& curve);

}  // namespace scalemark
