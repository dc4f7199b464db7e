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

/// Writes one point and says why what is missing is missing; reasons of several points stand side
/// by side.
class PointWriter {
 public:
  explicit PointWriter(Json& record)
      : record_(record), point_(record["points"].emplace_back(Json::object())) {}

  void value(const char* key, const Json& value, const std::string& reason) {
    point_[key] = value;
    if (!value.is_null()) return;
    Json& known = record_["unavailable"]["points." + std::string(key)];
    if (known.is_null())
      known = reason;
    else if (known.get<std::string>().find(reason) == std::string::npos)
      known = known.get<std::string>() + "; " + reason;
  }
  void repeats(const std::vector<PointRepeat>& repeats) {
    Json& list = point_["repeats"] = Json::array();
    for (const PointRepeat& repeat : repeats) list.push_back(repeat_json(repeat));
  }

 private:
  Json& record_;
  Json& point_;
};

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json or_null(const std::optional<Interval>& interval) {
  return interval ? Json{interval->lo, interval->hi} : Json(nullptr);
}

void write_point(Json& record, const ScalingPoint& point, bool is_base) {
  const std::string one_repeat = "one repeat has no interval: ask for more with --repeats";
  const std::string no_interval = is_base ? "the base is compared with itself" : one_repeat;
  const std::string no_baseline = point.ranks == 1 ? "one rank has nothing to communicate"
                                                   : "no run without communication was asked for";
  PointWriter writer(record);
  writer.value("ranks", point.ranks, "");
  writer.value("throughput", point.throughput, "");
  writer.value("ci95", or_null(point.ci95), one_repeat);
  writer.value("speedup", point.speedup, "");
  writer.value("speedup_ci95", or_null(point.speedup_ci95), no_interval);
  writer.value("efficiency", point.efficiency, "");
  writer.value("efficiency_ci95", or_null(point.efficiency_ci95), no_interval);
  writer.value("baseline_throughput", or_null(point.baseline_throughput), no_baseline);
  writer.value("exposed_seconds", or_null(point.exposed_seconds), no_baseline);
  writer.value("exposed_method",
               point.exposed_method.empty() ? Json(nullptr) : Json(point.exposed_method),
               no_baseline);
  writer.repeats(point.repeats);
}

void write_unfinished_point(Json& record, const PointRuns& runs, const std::string& why) {
  PointWriter writer(record);
  writer.value("ranks", runs.ranks, "");
  for (const char* key :
       {"throughput", "ci95", "speedup", "speedup_ci95", "efficiency", "efficiency_ci95",
        "baseline_throughput", "exposed_seconds", "exposed_method"})
    writer.value(key, nullptr, why);
  auto repeats = runs.repeats;
  repeats.insert(repeats.end(), runs.baselines.begin(), runs.baselines.end());
  writer.repeats(repeats);
}

void write_curve(Json& record, const ScalingCurve& curve) {
  record["base"] = {{"ranks", curve.base_ranks}, {"throughput", curve.base_throughput}};
  for (const ScalingPoint& point : curve.points)
    write_point(record, point, point.ranks == curve.base_ranks);
}

void write_unfinished_curve(Json& record, std::vector<PointRuns> points, const std::string& why) {
  std::ranges::sort(points, {}, &PointRuns::ranks);
  record["base"] = {{"ranks", points.empty() ? 1 : points.front().ranks}};
  set_unavailable(record, "base.throughput", why);
  for (const PointRuns& point : points) write_unfinished_point(record, point, why);
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
