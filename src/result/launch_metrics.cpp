// See launch_metrics.hpp.
#include "result/launch_metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "config/flags.hpp"
#include "error.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/schema.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {
namespace {

using Pointer = std::optional<Json::json_pointer>;

/// Points of curves have these metrics of runs, too.
constexpr std::pair<const char*, const char*> kInPoints[] = {
    {"exposed_seconds", "/exposed_seconds"},
    {"target_steps", "/target/steps"},
    {"target_seconds", "/target/seconds"}};

std::vector<MetricRow> made_table() {
  const std::set<std::string> with_work{"run", "inference", "scaling", "instances"};
  std::vector<MetricRow> table{
      {{"throughput", "", true, true, true}, with_work, "of instances the cumulative rate"},
      {{"throughput_per_rank", "/rank", true, true, true},
       with_work,
       "for sets with `--varied ranks`"},
      {{"efficiency", "of the smallest point", false, true, false},
       with_work,
       "rate per rank over that at the smallest common point of the same set and repeat"}};
  const auto add = [&](const char* kind, const Fields& fields) {
    visit_fields(fields, [&](const Field& field, const std::string& pointer) {
      if (!field.compared) return;
      const auto& [name, unit, better, per] = *field.compared;
      table.push_back({{name, unit, false, better == Better::higher, better == Better::faster},
                       {kind},
                       field.text,
                       Json::json_pointer(pointer),
                       {},
                       *per ? Pointer(Json::json_pointer(std::string("/") + per)) : Pointer()});
    });
  };
  add("run", fields_of<RunResult>());
  add("inference", fields_of<InferenceResult>());
  for (MetricRow& row : table)
    for (const auto& [name, pointer] : kInPoints)
      if (row.metric.name == name) {
        row.kinds.insert("scaling");
        row.in_point = Json::json_pointer(pointer);
      }
  table.push_back({{"time_to_solution", "seconds", false, false, true},
                   {"scaling"},
                   "of `--solution_steps`",
                   {},
                   Json::json_pointer("/time_to_solution_seconds")});
  table.push_back({{"sum_of_rates", "", true, true, true},
                   {"instances"},
                   "of the jobs, each in its own window",
                   {},
                   Json::json_pointer("/sum_of_rates")});
  return table;
}

/// Unset where the record has no number there.
std::optional<double> number_at(const Json& json, const Pointer& place) {
  if (!place || !json.contains(*place)) return std::nullopt;
  const Json& value = json.at(*place);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

void add_metrics(MeasuredLaunch& launch, const Json& json, Pointer MetricRow::*pointer) {
  for (const MetricRow& row : metric_table()) {
    const auto value = number_at(json, row.*pointer);
    if (!value) continue;
    const auto per = row.per ? number_at(json, row.per) : 1;
    if (per && *per > 0) launch.metrics[row.metric.name] = *value / *per;
  }
}

bool is_of_preflight(const std::string& name) { return name.find('.') != name.npos; }

}  // namespace

std::span<const MetricRow> metric_table() {
  static const std::vector<MetricRow> table = made_table();
  return table;
}

void check_metric(const std::string& flag, const std::string& name) {
  if (is_of_preflight(name)) return;
  std::vector<std::string> legal;
  for (const MetricRow& row : metric_table()) legal.push_back(row.metric.name);
  legal.emplace_back("those of preflight, such as gemm.fp32.flops");
  check_choice(flag, name, legal);
}

Metric find_metric(const std::string& name, std::span<const MeasuredLaunch* const> launches) {
  for (const MetricRow& row : metric_table())
    if (row.metric.name == name) return row.metric;
  std::set<std::string> described;
  for (const MeasuredLaunch* launch : launches) {
    const auto found = launch->described.find(name);
    if (found != launch->described.end()) return found->second;
    for (const auto& [other, metric] : launch->described) described.insert(other);
  }
  throw ConfigError(
      fmt::format("--metric: no record has {}; they have {}", name, fmt::join(described, ", ")));
}

std::set<std::string> kinds_with(const std::vector<std::string>& metrics) {
  std::set<std::string> kinds;
  for (const std::string& name : metrics) {
    if (is_of_preflight(name)) kinds.insert("preflight");
    for (const MetricRow& row : metric_table())
      if (row.metric.name == name) kinds.insert(row.kinds.begin(), row.kinds.end());
  }
  return kinds;
}

void add_record_metrics(MeasuredLaunch& launch, const Json& record) {
  add_metrics(launch, record, &MetricRow::in_record);
}

void add_point_metrics(MeasuredLaunch& launch, const Json& point) {
  add_metrics(launch, point, &MetricRow::in_point);
}

}  // namespace scalemark
