// The scaling record: what docs/schema/scaling.schema.json asks for, from a curve or from the runs
// of one that ended early.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/resources.hpp"
#include "analysis/scaling.hpp"
#include "config/curves.hpp"
#include "config/names.hpp"
#include "models/catalog.hpp"
#include "result/preflight_reference.hpp"

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

/// Why numbers of a point are null.
struct Reasons {
  std::string interval, baseline, resources, solution, target;
};

Reasons reasons_of(const ScalingPoint& point, const RunConfig& config, bool is_base) {
  const std::string one_repeat = "one repeat has no interval: ask for more with --repeats";
  return {is_base ? "the base is compared with itself" : one_repeat,
          point.ranks == 1 ? "one rank has nothing to communicate"
                           : "no run without communication was asked for",
          why_uncounted(config.resource), "no --solution_steps was asked for",
          "no --target_loss was asked for"};
}

Json target_json(const std::optional<TargetLoss>& target) {
  if (!target) return nullptr;
  if (!target->reached) return {{"reached", false}, {"steps", nullptr}, {"seconds", nullptr}};
  return {{"reached", true}, {"steps", target->steps}, {"seconds", target->seconds}};
}

Json trend_json(const std::optional<Trend>& trend) {
  if (!trend) return nullptr;
  return {{"expected_efficiency", trend->expected_efficiency}, {"dip", trend->dip}};
}

void write_solution(PointWriter& writer, const ScalingPoint& point, const Reasons& why) {
  const auto& solution = point.solution;
  const auto number = [&](auto member) {
    return solution ? Json((*solution).*member) : Json(nullptr);
  };
  writer.value("time_to_solution_seconds", number(&TimeToSolution::seconds), why.solution);
  writer.value("time_to_solution_speedup", number(&TimeToSolution::speedup), why.solution);
  writer.value("time_to_solution_speedup_ci95",
               or_null(solution ? solution->speedup_ci95 : std::nullopt),
               solution ? why.interval : why.solution);
  writer.value("time_to_solution_efficiency",
               or_null(solution ? solution->efficiency : std::nullopt),
               solution ? why.resources : why.solution);
}

/// Batches come from the configuration: that of the base may be its own.
void write_place(PointWriter& writer, const RunConfig& config, int ranks, int base_ranks,
                 const std::optional<int>& resources) {
  const BatchPlan batch = plan_batch(point_config(config, ranks, base_ranks), ranks);
  writer.value("ranks", ranks, "");
  writer.value("batch_size_per_rank", batch.batch_size_per_rank, "");
  writer.value("global_batch_size", batch.global_batch_size, "");
  writer.value("resources", resources ? Json(*resources) : Json(nullptr),
               why_uncounted(config.resource));
}

void write_point(Json& record, const RunConfig& config, const ScalingPoint& point, int base_ranks) {
  const Reasons why = reasons_of(point, config, point.ranks == base_ranks);
  PointWriter writer(record);
  write_place(writer, config, point.ranks, base_ranks, point.resources);
  writer.value("throughput", point.throughput, "");
  writer.value("ci95", or_null(point.ci95),
               "one repeat has no interval: ask for more with --repeats");
  writer.value("speedup", point.speedup, "");
  writer.value("speedup_ci95", or_null(point.speedup_ci95), why.interval);
  writer.value("efficiency", or_null(point.efficiency), why.resources);
  writer.value("efficiency_ci95", or_null(point.efficiency_ci95),
               point.speedup_ci95 ? why.resources : why.interval);
  writer.value("trend", trend_json(point.trend), "a point with two neighbours has one");
  writer.value("baseline_throughput", or_null(point.baseline_throughput), why.baseline);
  writer.value("exposed_seconds", or_null(point.exposed_seconds), why.baseline);
  writer.value("exposed_method",
               point.exposed_method.empty() ? Json(nullptr) : Json(point.exposed_method),
               why.baseline);
  write_solution(writer, point, why);
  writer.value("target", target_json(point.target), why.target);
  if (point.target && !point.target->reached)
    for (const char* key : {"steps", "seconds"})
      record["unavailable"][std::string("points.target.") + key] =
          "not every repeat came down to the target loss";
  writer.repeats(point.repeats);
}

void write_unfinished_point(Json& record, const RunConfig& config, const PointRuns& runs,
                            int base_ranks, const std::string& why) {
  PointWriter writer(record);
  write_place(writer, config, runs.ranks, base_ranks, resources_of(runs, config.resource));
  for (const char* key : {"throughput", "ci95", "speedup", "speedup_ci95", "efficiency",
                          "efficiency_ci95", "trend", "baseline_throughput", "exposed_seconds",
                          "exposed_method", "time_to_solution_seconds", "time_to_solution_speedup",
                          "time_to_solution_speedup_ci95", "time_to_solution_efficiency", "target"})
    writer.value(key, nullptr, why);
  auto repeats = runs.repeats;
  repeats.insert(repeats.end(), runs.baselines.begin(), runs.baselines.end());
  writer.repeats(repeats);
}

std::optional<double> as_real(const std::optional<std::int64_t>& steps) {
  return steps ? std::optional(static_cast<double>(*steps)) : std::nullopt;
}

void write_curve(Json& record, const RunConfig& config, const std::vector<PointRuns>& points) {
  const CurveQuestions questions{config.resource, as_real(config.solution_steps),
                                 as_real(config.base_solution_steps),
                                 config.target_loss.has_value()};
  const ScalingCurve curve =
      make_scaling_curve(record["unit"], record["scaling"], points, questions);
  record["base"] = {{"ranks", curve.base_ranks}, {"throughput", curve.base_throughput}};
  for (const ScalingPoint& point : curve.points)
    write_point(record, config, point, curve.base_ranks);
}

void write_unfinished_curve(Json& record, const RunConfig& config, std::vector<PointRuns> points,
                            const std::string& why) {
  std::ranges::sort(points, {}, &PointRuns::ranks);
  const int base_ranks = points.empty() ? 1 : points.front().ranks;
  record["base"] = {{"ranks", base_ranks}};
  set_unavailable(record, "base.throughput", why);
  for (const PointRuns& point : points)
    write_unfinished_point(record, config, point, base_ranks, why);
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
  const bool unexplained = status != Status::ok && reason.empty();
  Json record =
      envelope("scaling", status, unexplained ? "ended with status " + to_string(status) : reason);
  record["unit"] = model ? std::string(model->unit) : "images/sec";
  record["scaling"] = to_string(config.config.scaling);
  record["resource"] = to_string(config.config.resource);
  record["repeat_unit"] = repeat_unit;
  record["base"] = Json::object();
  record["points"] = Json::array();
  record["config"] = config_to_json(config);
  record["config_hash"] = config_hash(config.config, world_size);
  record["preflight"] = nullptr;
  record["system"] = system.json;
  record["environment"] = environment;
  record["unavailable"] = system.unavailable;
  set_unavailable(record, "preflight", kNoPreflight);
  if (status == Status::ok)
    write_curve(record, config.config, points);
  else
    write_unfinished_curve(record, config.config, points,
                           "the curve is not complete: " + record["reason"].get<std::string>());
  explain_missing_paths(record);
  return record;
}

}  // namespace scalemark
