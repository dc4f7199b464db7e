// Lists the metrics of launches, and reads their values off typed records.
#include "result/launch_metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "config/flags.hpp"
#include "error.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/schema.hpp"
#include "record/write.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {
namespace {

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
  const auto add = [&](const char* kind, const Fields& fields, bool whole) {
    visit_fields(fields, [&](const Field& field, const std::string& pointer) {
      if (!field.compared) return;
      const auto& [name, unit, better, per] = *field.compared;
      const auto name_of = [](const MetricRow& row) { return std::string_view(row.metric.name); };
      const auto found = std::ranges::find(table, std::string_view(name), name_of);
      if (found != table.end()) return static_cast<void>(found->kinds.insert(kind));
      std::string key = whole ? pointer.substr(1) : "";
      std::ranges::replace(key, '/', '.');
      table.push_back({{name, unit, false, better == Better::higher, better == Better::faster},
                       {kind},
                       field.text,
                       std::move(key)});
    });
  };
  add("run", fields_of<RunResult>(), true);
  add("inference", fields_of<InferenceResult>(), true);
  add("scaling", fields_of<record::ScalingPoint>(), false);
  table.push_back(
      {{kSumOfRates, "", true, true, true}, {"instances"}, "of the jobs, each in its own window"});
  return table;
}

/// The number that a field of an object has; unset where it is unknown.
std::optional<double> number_of(const Field& field, const void* object) {
  JsonWriter writer("");
  const Json value =
      field.shape->write(writer, field, static_cast<const char*>(object) + field.offset);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// What the numbers of objects within a record need of it.
class MetricReader {
 public:
  MetricReader(MeasuredLaunch& launch, const Fields& fields, const void* record)
      : launch_(launch), fields_(fields), record_(record) {
    read(fields, record);
  }

 private:
  void read(const Fields& fields, const void* object) {
    for (const Field& field : fields) {
      if (field.compared) add(field, object);
      const Fields* inner = field.shape->fields();
      if (inner == nullptr || !field.shape->path().empty()) continue;
      const void* known = field.shape->known(static_cast<const char*>(object) + field.offset);
      if (known != nullptr) read(*inner, known);
    }
  }

  void add(const Field& field, const void* object) {
    const auto value = number_of(field, object), per = divisor(field.compared->per);
    if (value && per && *per > 0) launch_.metrics[field.compared->name] = *value / *per;
  }

  std::optional<double> divisor(std::string_view key) const {
    if (key.empty()) return 1;
    const auto found = std::ranges::find(fields_, key, &Field::key);
    return found == fields_.end() ? std::nullopt : number_of(*found, record_);
  }

  MeasuredLaunch& launch_;
  const Fields& fields_;
  const void* record_;
};

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

void add_metrics(MeasuredLaunch& launch, const Fields& fields, const void* object) {
  MetricReader(launch, fields, object);
}

}  // namespace scalemark
