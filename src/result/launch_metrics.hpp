// The one table of what launches can be compared by: names, units, where records have it, and
// whether more is better.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace scalemark {

struct MeasuredLaunch;

struct Metric {
  std::string name;
  std::string unit;        ///< of records' own units with `of_record`: what follows it, "/rank"
  bool of_record = false;  ///< the record's unit ("images/sec") and then `unit`
  bool higher_is_better = false;
  bool is_speed = false;  ///< better and worse read "faster" and "slower", else "higher", "lower"
};

/// A metric of the table and where it stands in a record. Empty pointers: not there, or computed
/// from the work of the launch (throughput) or from several launches (efficiency).
struct MetricRow {
  const char* name;
  const char* unit;
  bool of_record, higher_is_better, is_speed;
  const char* kinds;          ///< of records that may have it, words between spaces
  const char* in_record;      ///< JSON pointer in a run or inference record
  const char* in_point = "";  ///< in a point of a scaling record, a repeat of an instances record
  const char* per = "";       ///< JSON pointer in the record: what the value is divided by
};

inline constexpr const char* kWithWork = "run inference scaling instances";

inline constexpr MetricRow kMetrics[] = {
    {"throughput", "", true, true, true, kWithWork, ""},
    {"throughput_per_rank", "/rank", true, true, true, kWithWork, ""},
    {"efficiency", "of the smallest point", false, true, false, kWithWork, ""},
    {"exposed_seconds", "seconds/step", false, false, false, "run scaling",
     "/communication/exposed_seconds", "/exposed_seconds"},
    {"communication_cpu_seconds", "seconds/step", false, false, false, "run",
     "/noise/communication_cpu_seconds", "", "/steps"},
    {"wire_bytes", "bytes/step", false, false, false, "run", "/communication/wire_bytes_per_step"},
    {"nic_bytes", "bytes/step", false, false, false, "run", "/communication/nic_bytes_per_step"},
    {"time_to_solution", "seconds", false, false, true, "scaling", "", "/time_to_solution_seconds"},
    {"target_steps", "steps", false, false, false, "run scaling", "/loss/target/steps",
     "/target/steps"},
    {"target_seconds", "seconds", false, false, true, "run scaling", "/loss/target/seconds",
     "/target/seconds"},
    {"latency_mean", "seconds", false, false, true, "inference", "/latency_seconds/mean"},
    {"latency_p50", "seconds", false, false, true, "inference", "/latency_seconds/p50"},
    {"latency_p90", "seconds", false, false, true, "inference", "/latency_seconds/p90"},
    {"latency_p99", "seconds", false, false, true, "inference", "/latency_seconds/p99"},
    {"latency_p99_9", "seconds", false, false, true, "inference", "/latency_seconds/p99_9"},
    {"joules_per_sample", "joules/sample", false, false, false, "run inference",
     "/energy/joules_per_sample"},
    {"sum_of_rates", "", true, true, true, "instances", "", "/sum_of_rates"},
};

/// Of the table; names with a dot are those of preflight, "gemm.fp32.flops", which their launches
/// describe. ConfigError, naming all there are, for others.
void check_metric(const std::string& flag, const std::string& name);

/// Its facts, by the table or by the launches. ConfigError where no launch describes it.
Metric find_metric(const std::string& name, std::span<const MeasuredLaunch* const> launches);

/// Kinds of records that may have one of them.
std::set<std::string> kinds_with(const std::vector<std::string>& metrics);

/// The numbers of the table that a run or inference record has; a point of a curve, or a repeat of
/// an instances record.
void add_record_metrics(MeasuredLaunch& launch, const Json& record);
void add_point_metrics(MeasuredLaunch& launch, const Json& point);

}  // namespace scalemark
