// See launch_metrics.hpp.
#include "result/launch_metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "config/flags.hpp"
#include "error.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {
namespace {

/// Null where the record has no such place.
Json number_at(const Json& json, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (*pointer == '\0' || !json.contains(place) || !json.at(place).is_number()) return nullptr;
  return json.at(place);
}

void add_metrics(MeasuredLaunch& launch, const Json& json, const char* MetricRow::*pointer) {
  for (const MetricRow& row : kMetrics) {
    const Json value = number_at(json, row.*pointer);
    if (value.is_null()) continue;
    const Json per = *row.per == '\0' ? Json(1) : number_at(json, row.per);
    if (per.is_number() && per.get<double>() > 0)
      launch.metrics[row.name] = value.get<double>() / per.get<double>();
  }
}

bool is_of_preflight(const std::string& name) { return name.find('.') != name.npos; }

}  // namespace

void check_metric(const std::string& flag, const std::string& name) {
  if (is_of_preflight(name)) return;
  std::vector<std::string> legal;
  for (const MetricRow& row : kMetrics) legal.emplace_back(row.name);
  legal.emplace_back("those of preflight, such as gemm.fp32.flops");
  check_choice(flag, name, legal);
}

Metric find_metric(const std::string& name, std::span<const MeasuredLaunch* const> launches) {
  for (const MetricRow& row : kMetrics)
    if (row.name == name)
      return {name, row.unit, row.of_record, row.higher_is_better, row.is_speed};
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
    for (const MetricRow& row : kMetrics) {
      std::istringstream words(row.name == name ? row.kinds : "");
      for (std::string word; words >> word;) kinds.insert(word);
    }
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
