// What launches can be compared by: names, units, where records have it, and whether more is
// better.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
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

/// A metric and where it stands in a record. Unset pointers: not there, or computed from the work
/// of the launch (throughput) or from several launches (efficiency).
struct MetricRow {
  Metric metric;
  std::set<std::string> kinds;                       ///< of records that may have it
  std::string about;                                 ///< for docs/compare.md
  std::optional<Json::json_pointer> in_record = {};  ///< in that of a run or an inference
  /// In a point of a scaling record, a repeat of an instances record.
  std::optional<Json::json_pointer> in_point = {};
  std::optional<Json::json_pointer> per = {};  ///< in the record: what the value is divided by
};

/// What is computed first, then the numbers of runs and of inferences, which are described with
/// their fields (Field::metric), then those of curves and of instances alone.
std::span<const MetricRow> metric_table();

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
