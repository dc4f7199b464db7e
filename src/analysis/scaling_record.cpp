// The scaling record: what docs/schema/scaling.schema.json asks for, from a curve or from the runs
// of one that ended early.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/scaling.hpp"
#include "config/names.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

Json repeat_json(const PointRepeat& repeat) {
  return {{"run", repeat.run_id},
          {"path", repeat.run_path.empty() ? Json(nullptr) : Json(repeat.run_path)},
          {"baseline", repeat.baseline},
          {"units", repeat.units},
          {"seconds", repeat.seconds},
          {"throughput", repeat.units / repeat.seconds}};
}

/// Writes one point and says why what is missing is missing.
class PointWriter {
 public:
  PointWriter(Json& record, std::size_t index)
      : record_(record), path_(fmt::format("points.{}.", index)) {
    record["points"].push_back(Json::object());
  }
  Json& point() { return record_["points"].back(); }

  void value(const char* key, const std::optional<double>& value, const std::string& reason) {
    if (value)
      point()[key] = *value;
    else
      set_unavailable(record_, path_ + key, reason);
  }
  void interval(const char* key, const std::optional<Interval>& interval,
                const std::string& reason) {
    if (interval)
      point()[key] = {interval->lo, interval->hi};
    else
      set_unavailable(record_, path_ + key, reason);
  }
  void repeats(const std::vector<PointRepeat>& repeats) {
    Json& list = point()["repeats"] = Json::array();
    for (const PointRepeat& repeat : repeats) list.push_back(repeat_json(repeat));
  }

 private:
  Json& record_;
  std::string path_;
};

void write_point(Json& record, std::size_t index, const ScalingPoint& point, bool is_base) {
  const std::string one_repeat = "one repeat has no interval: ask for more with --repeats";
  const std::string base = "the base itself";
  const std::string no_baseline = point.ranks == 1 ? "one rank has nothing to communicate"
                                                   : "no run without communication was asked for";
  PointWriter writer(record, index);
  writer.point()["ranks"] = point.ranks;
  writer.value("throughput", point.throughput, "");
  writer.interval("ci95", point.ci95, one_repeat);
  writer.value("speedup", point.speedup, "");
  writer.interval("speedup_ci95", point.speedup_ci95, is_base ? base : one_repeat);
  writer.value("efficiency", point.efficiency, "");
  writer.interval("efficiency_ci95", point.efficiency_ci95, is_base ? base : one_repeat);
  writer.value("baseline_throughput", point.baseline_throughput, no_baseline);
  writer.value("exposed_seconds", point.exposed_seconds, no_baseline);
  writer.point()["exposed_method"] =
      point.exposed_method.empty() ? Json(nullptr) : Json(point.exposed_method);
  if (point.exposed_method.empty())
    set_unavailable(record, fmt::format("points.{}.exposed_method", index), no_baseline);
  writer.repeats(point.repeats);
}

void write_unfinished_point(Json& record, std::size_t index, const PointRuns& runs,
                            const std::string& why) {
  PointWriter writer(record, index);
  writer.point()["ranks"] = runs.ranks;
  for (const char* key :
       {"throughput", "ci95", "speedup", "speedup_ci95", "efficiency", "efficiency_ci95",
        "baseline_throughput", "exposed_seconds", "exposed_method"})
    writer.value(key, std::nullopt, why);
  auto repeats = runs.repeats;
  repeats.insert(repeats.end(), runs.baselines.begin(), runs.baselines.end());
  writer.repeats(repeats);
}

void write_curve(Json& record, const ScalingCurve& curve) {
  record["base"] = {{"ranks", curve.base_ranks}, {"throughput", curve.base_throughput}};
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    write_point(record, i, curve.points[i], i == 0);
}

void write_unfinished_curve(Json& record, std::vector<PointRuns> points, const std::string& why) {
  std::ranges::sort(points, {}, &PointRuns::ranks);
  record["base"] = {{"ranks", points.empty() ? 1 : points.front().ranks}};
  set_unavailable(record, "base.throughput", why);
  for (std::size_t i = 0; i < points.size(); ++i) write_unfinished_point(record, i, points[i], why);
}

/// A file that nobody asked for is no fault, but the null must be explained.
void explain_missing_paths(Json& record) {
  for (const Json& point : record["points"])
    for (const Json& repeat : point["repeats"])
      if (repeat["path"].is_null())
        record["unavailable"]["points.repeats.path"] =
            "no --output: the run records were not written";
}

}  // namespace

Json make_scaling_record(const LoadedConfig& config, int world_size,
                         const std::vector<PointRuns>& points, Status status,
                         const std::string& reason, const SystemInfo& system,
                         const std::map<std::string, std::string>& environment,
                         const std::string& repeat_unit) {
  const auto model = find_model(config.config.model);
  const std::string unit = model ? std::string(model->unit) : "images/sec";
  const std::string scaling = to_string(config.config.scaling);

  const bool unexplained = status != Status::ok && reason.empty();
  Json record =
      envelope("scaling", status, unexplained ? "ended with status " + to_string(status) : reason);
  record["unit"] = unit;
  record["scaling"] = scaling;
  record["resource"] = "rank";
  record["repeat_unit"] = repeat_unit;
  record["base"] = Json::object();
  record["points"] = Json::array();
  record["config"] = config_to_json(config);
  record["config_hash"] = config_hash(config.config, world_size);
  record["system"] = system.json;
  record["environment"] = environment;
  record["unavailable"] = system.unavailable;
  if (status == Status::ok)
    write_curve(record, make_scaling_curve(unit, scaling, points));
  else
    write_unfinished_curve(record, points,
                           "the curve is not complete: " + record["reason"].get<std::string>());
  explain_missing_paths(record);
  return record;
}

}  // namespace scalemark
