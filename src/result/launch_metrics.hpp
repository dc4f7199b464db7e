// What launches can be compared by: names, units, where records have it, and whether more is
// better.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "record/describe.hpp"

namespace scalemark {

struct MeasuredLaunch;

/// The rates of the jobs of instances, each in its own window, added up.
inline constexpr const char* kSumOfRates = "sum_of_rates";

struct Metric {
  std::string name;
  std::string unit;        ///< of records' own units with `of_record`: what follows it, "/rank"
  bool of_record = false;  ///< the record's unit ("images/sec") and then `unit`
  bool higher_is_better = false;
  bool is_speed = false;  ///< better and worse read "faster" and "slower", else "higher", "lower"
};

/// A metric, for docs/compare.md.
struct MetricRow {
  Metric metric;
  std::set<std::string> kinds;  ///< of records that may have it
  std::string about;
  std::string key = {};  ///< dotted, in the record of a run or an inference; empty: not there
};

/// What is computed first, then the numbers of runs, inferences and points of curves, which are
/// described with their fields (Field::metric), then those of instances alone.
std::span<const MetricRow> metric_table();

/// Throws ConfigError, naming all metrics there are, where `name` is not one of the table. Names
/// with a dot are those of preflight ("gemm.fp32.flops"), which their launches describe.
void check_metric(const std::string& flag, const std::string& name);

/// Its facts, by the table or by the launches. ConfigError where no launch describes it.
Metric find_metric(const std::string& name, std::span<const MeasuredLaunch* const> launches);

/// Kinds of records that may have one of them.
std::set<std::string> kinds_with(const std::vector<std::string>& metrics);

/// The numbers of the table that an object of these fields has.
void add_metrics(MeasuredLaunch& launch, const Fields& fields, const void* object);
/// Adds the metrics of the record of a run or an inference, or of a point of a curve.
template <typename T>
void add_metrics(MeasuredLaunch& launch, const T& record) {
  add_metrics(launch, fields_of<T>(), &record);
}

}  // namespace scalemark
