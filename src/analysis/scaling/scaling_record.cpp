// The scaling record: what docs/schema/scaling.schema.json asks for, from a curve or from the runs
// of one that ended early.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/resources.hpp"
#include "analysis/scaling/scaling.hpp"
#include "config/curves.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "models/catalog.hpp"
#include "result/record_schemas.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

Json repeat_json(const PointRepeat& repeat) {
  return {{"run", repeat.run_id},       {"path", null_if_empty(repeat.run_path)},
          {"repeat", repeat.number},    {"baseline", repeat.baseline},
          {"units", repeat.units},      {"seconds", repeat.seconds},
          {"throughput", repeat.rate()}};
}

/// Writes one point, which begins with all its keys, and says why what is missing is missing;
/// reasons of several points stand side by side.
class PointWriter {
 public:
  explicit PointWriter(Json& record)
      : record_(record),
        point_(record["points"].emplace_back(blank_record("scaling", "/properties/points/items"))) {
  }

  void value(const char* key, const Json& value, const std::string& reason) {
    point_[key] = value;
    if (value.is_null()) add_reason(record_, "points." + std::string(key), reason);
  }
  void repeats(const std::vector<PointRepeat>& repeats) {
    Json& list = point_["repeats"] = Json::array();
    for (const PointRepeat& repeat : repeats) list.push_back(repeat_json(repeat));
  }

 private:
  Json& record_;
  Json& point_;
};

bool is_of_launches(const Json& record) {
  return record.at("repeat_unit") == to_string(RepeatUnit::launch);
}

/// Why numbers of a point are null.
struct Reasons {
  std::string repeats, interval, baseline, resources, solution, target;
};

Reasons reasons_of(const ScalingPoint& point, const ResolvedConfig& config, bool is_base,
                   bool launches) {
  const std::string one_repeat =
      launches ? "one launch, or one repeat in common with the base, has no interval: give the "
                 "sweep more repeats"
               : "one repeat has no interval: ask for more with --repeats";
  return {one_repeat,
          is_base ? "the base is compared with itself" : one_repeat,
          point.ranks == 1 ? "one rank has nothing to communicate"
          : launches       ? "no point of the sweep has these settings without communication"
                           : "no run without communication was asked for",
          why_uncounted(config.resource),
          "no --solution_steps was asked for",
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
void write_place(PointWriter& writer, const ResolvedConfig& config, int ranks, int base_ranks,
                 const std::optional<int>& resources) {
  const BatchPlan batch = plan_batch(point_config(config, ranks, base_ranks), ranks);
  writer.value("ranks", ranks, "");
  writer.value("batch_size_per_rank", batch.batch_size_per_rank, "");
  writer.value("global_batch_size", batch.global_batch_size, "");
  writer.value("resources", or_null(resources), why_uncounted(config.resource));
}

void write_point(Json& record, const ResolvedConfig& config, const ScalingPoint& point,
                 int base_ranks) {
  const Reasons why = reasons_of(point, config, point.ranks == base_ranks, is_of_launches(record));
  PointWriter writer(record);
  write_place(writer, config, point.ranks, base_ranks, point.resources);
  writer.value("throughput", point.throughput, "");
  writer.value("ci95", or_null(point.ci95), why.repeats);
  writer.value("speedup", point.speedup, "");
  writer.value("speedup_ci95", or_null(point.speedup_ci95), why.interval);
  writer.value("efficiency", or_null(point.efficiency), why.resources);
  writer.value("efficiency_ci95", or_null(point.efficiency_ci95),
               point.speedup_ci95 ? why.resources : why.interval);
  writer.value("trend", trend_json(point.trend), "a point with two neighbours has one");
  writer.value("baseline_throughput", or_null(point.baseline_throughput), why.baseline);
  writer.value("exposed_seconds", or_null(point.exposed_seconds), why.baseline);
  writer.value("exposed_ci95", or_null(point.exposed_ci95),
               point.exposed_seconds ? why.repeats : why.baseline);
  writer.value("exposed_method", null_if_empty(point.exposed_method), why.baseline);
  write_solution(writer, point, why);
  writer.value("target", target_json(point.target), why.target);
  writer.repeats(point.repeats);
}

void write_unfinished_point(Json& record, const ResolvedConfig& config, const PointRuns& runs,
                            int base_ranks) {
  PointWriter writer(record);
  write_place(writer, config, runs.ranks, base_ranks, resources_of(runs, config.resource));
  auto repeats = runs.repeats;
  repeats.insert(repeats.end(), runs.baselines.begin(), runs.baselines.end());
  writer.repeats(repeats);
}

std::optional<double> as_real(const std::optional<std::int64_t>& steps) {
  return steps ? std::optional(static_cast<double>(*steps)) : std::nullopt;
}

/// Where the interval of a point leaves all open: empty, or what would help.
std::string too_noisy(const ScalingPoint& point, const std::string& unit, bool launches) {
  constexpr double kWidest = 2;  // between its ends
  if (!point.ci95 || point.ci95->hi <= kWidest * point.ci95->lo) return "";
  return fmt::format(
      "too noisy to show anything: {} {} of {} could be {} to {}; more {}, longer ones "
      "(--num_batches), or a quieter machine (--wait_for_idle 600) would help",
      four_digits(point.throughput), unit, counted(static_cast<std::size_t>(point.ranks), "rank"),
      four_digits(point.ci95->lo), four_digits(point.ci95->hi),
      launches ? "launches" : "rounds (--repeats 5)");
}

void write_curve(Json& record, const ResolvedConfig& config, const std::vector<PointRuns>& points) {
  const bool launches = is_of_launches(record);
  const CurveQuestions questions{
      config.resource, as_real(config.solution_steps), as_real(config.base_solution_steps),
      config.target_loss.has_value(), launches ? RepeatUnit::launch : RepeatUnit::in_process};
  const ScalingCurve curve =
      make_scaling_curve(record["unit"], record["scaling"], points, questions);
  record["base"] = {{"ranks", curve.base_ranks}, {"throughput", curve.base_throughput}};
  for (const ScalingPoint& point : curve.points) {
    write_point(record, config, point, curve.base_ranks);
    add_warnings(record, {too_noisy(point, record["unit"], launches)});
  }
}

void write_unfinished_curve(Json& record, const ResolvedConfig& config,
                            std::vector<PointRuns> points) {
  std::ranges::sort(points, {}, &PointRuns::ranks);
  const int base_ranks = points.empty() ? 1 : points.front().ranks;
  record["base"]["ranks"] = base_ranks;
  for (const PointRuns& point : points) write_unfinished_point(record, config, point, base_ranks);
}

}  // namespace

Json make_scaling_record(const RecordContext& context, int world_size,
                         const std::vector<PointRuns>& points, const NoiseSummary& noise,
                         const Outcome& outcome, RepeatUnit unit) {
  const ResolvedConfig& config = context.config.config;
  Json record = start_record("scaling", context, outcome);
  record["unit"] = unit_of(config);
  record["scaling"] = to_string(config.scaling);
  record["resource"] = to_string(config.resource);
  record["repeat_unit"] = to_string(unit);
  record["kept_rounds"] = 0;
  record["failed_launches"] = 0;
  record["config_hash"] = config_hash(config, world_size);
  add_warnings(record, noise.warnings());
  add_warnings(record, {preflight_warning(record)});
  if (outcome.ok())
    write_curve(record, config, numbered(points));
  else
    write_unfinished_curve(record, config, numbered(points));
  for (const char* key : {"steps", "seconds"})
    explain_nulls(record, std::string("points.target.") + key,
                  "not every repeat came down to the target loss");
  // A file that nobody asked for is no fault, but the null must be explained.
  explain_nulls(record, "points.repeats.path",
                unit == RepeatUnit::launch ? "no --output, to which it would be relative"
                                           : "no --output: the run records were not written");
  explain_nulls(record, "", "the curve is not complete: " + record["reason"].get<std::string>());
  return record;
}

}  // namespace scalemark
