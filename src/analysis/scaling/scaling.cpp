// See scaling.hpp. The scaling record at the end is what docs/schema/scaling.schema.json asks for.
#include "analysis/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "config/curves.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"
#include "models/catalog.hpp"
#include "platform/slots.hpp"
#include "result/record_schemas.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

int threads_of_core(const Json& run) {
  const Json& system = run.at("system");
  if (!system.is_object() || !system.value("threads", Json()).is_number() ||
      !system.value("cores", Json()).is_number())
    return 1;
  return std::max(1, system["threads"].get<int>() / std::max(1, system["cores"].get<int>()));
}

std::optional<int> count_cores(const Json& run) {
  std::map<std::string, std::set<int>> cpus;
  for (const Json& rank : run.at("ranks")) {
    if (rank.at("cpus").is_null()) return std::nullopt;
    const auto own = parse_cpu_list(rank["cpus"].get<std::string>());
    if (!own) return std::nullopt;
    cpus[rank.at("host").get<std::string>()].insert(own->begin(), own->end());
  }
  const int threads = threads_of_core(run);
  int cores = 0;
  for (const auto& [host, numbers] : cpus)
    cores += (static_cast<int>(numbers.size()) + threads - 1) / threads;
  return cores;
}

/// By UUID, or by host and number where the driver tells none.
std::optional<int> count_gpus(const Json& run) {
  std::set<std::string> gpus;
  for (const Json& rank : run.at("ranks")) {
    if (rank.at("gpu").is_null()) return std::nullopt;
    gpus.insert(rank.at("gpu_uuid").is_null()
                    ? rank.at("host").get<std::string>() + ":" + rank["gpu"].dump()
                    : rank["gpu_uuid"].get<std::string>());
  }
  return static_cast<int>(gpus.size());
}

}  // namespace

std::optional<int> count_resources(const Json& run, Resource resource) {
  switch (resource) {
    case Resource::rank:
      break;
    case Resource::node: {
      std::set<std::string> hosts;
      for (const Json& rank : run.at("ranks")) hosts.insert(rank.at("host").get<std::string>());
      return static_cast<int>(hosts.size());
    }
    case Resource::core:
      return count_cores(run);
    case Resource::gpu:
      return count_gpus(run);
  }
  return static_cast<int>(run.at("ranks").size());
}

std::string why_uncounted(Resource resource) {
  switch (resource) {
    case Resource::core:
      return "a rank does not say which CPUs it may run on, or repeats differ in their cores";
    case Resource::gpu:
      return "a rank used no GPU, or repeats differ in their GPUs";
    case Resource::rank:
    case Resource::node:
      break;
  }
  return "no run says where it ran, or repeats differ in their hosts";
}

namespace {

/// Total seconds over total steps.
double mean_step(const std::vector<PointRepeat>& repeats) {
  double seconds = 0, steps = 0;
  for (const PointRepeat& repeat : repeats) {
    seconds += repeat.seconds;
    steps += repeat.seconds / repeat.step_seconds_mean;
  }
  return seconds / steps;
}

std::optional<Interval> throughput_interval(const std::vector<PointRepeat>& repeats) {
  std::vector<double> rates;
  for (const PointRepeat& repeat : repeats) rates.push_back(repeat.rate());
  return log_interval(rates);
}

/// Repeats of two points with the same number, which one round or one pass of a sweep measured:
/// pairing takes out what these have in common, a machine that was slow for a while. All repeats,
/// and no pairs, where no number is in both.
struct RepeatPairs {
  std::vector<PointRepeat> ours, theirs;

  RepeatPairs(const std::vector<PointRepeat>& all_ours,
              const std::vector<PointRepeat>& all_theirs) {
    for (const PointRepeat& repeat : all_ours) {
      const auto partner = std::ranges::find(all_theirs, repeat.number, &PointRepeat::number);
      if (partner == all_theirs.end()) continue;
      ours.push_back(repeat);
      theirs.push_back(*partner);
    }
    if (!ours.empty()) return;
    ours = all_ours;
    theirs = all_theirs;
    paired = false;
  }

  /// `value` of each pair; of none where no number is in both.
  template <typename Value>
  std::vector<double> each(Value value) const {
    std::vector<double> values;
    for (std::size_t i = 0; paired && i < ours.size(); ++i)
      values.push_back(value(ours[i], theirs[i]));
    return values;
  }

 private:
  bool paired = true;
};

double ratio_of_rates(const PointRepeat& a, const PointRepeat& b) { return a.rate() / b.rate(); }

void check_repeats(const PointRuns& point, const std::vector<PointRepeat>& repeats,
                   const char* what) {
  for (std::size_t round = 0; round < repeats.size(); ++round) {
    const PointRepeat& repeat = repeats[round];
    if (repeat.units > 0 && repeat.seconds > 0 && repeat.step_seconds_mean > 0) continue;
    throw RunError(fmt::format(
        "scaling curve: {} {} of {} ranks has {} units in {} s and a mean step of {} s; all must "
        "be positive",
        what, round + 1, point.ranks, repeat.units, repeat.seconds, repeat.step_seconds_mean));
  }
}

void check_rounds(const std::vector<PointRuns>& points, RepeatUnit unit) {
  if (points.empty())
    throw RunError("scaling curve: there are no points; at least one rank count is needed");
  const std::size_t rounds = points.front().repeats.size();
  for (const PointRuns& point : points) {
    if (point.repeats.empty())
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has no repeats", point.ranks));
    const bool in_process = unit == RepeatUnit::in_process;
    if (in_process && point.repeats.size() != rounds)
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has {} repeats, that of {} ranks has "
                      "{}; every round must measure every point",
                      point.ranks, point.repeats.size(), points.front().ranks, rounds));
    if (in_process && !point.baselines.empty() && point.baselines.size() != rounds)
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has {} repeats but {} without "
                      "communication; each needs one or none has any",
                      point.ranks, rounds, point.baselines.size()));
    check_repeats(point, point.repeats, "repeat");
    check_repeats(point, point.baselines, "baseline");
  }
}

/// A step beyond that of the same ranks without communication, or what it waited.
void set_exposed(ScalingPoint& point, const PointRuns& runs) {
  if (!runs.baselines.empty()) {
    const RepeatPairs pairs(runs.repeats, runs.baselines);
    point.baseline_throughput = total(runs.baselines).rate();
    point.exposed_seconds = mean_step(pairs.ours) - mean_step(pairs.theirs);
    point.exposed_ci95 = student_interval(pairs.each([](const auto& with, const auto& without) {
      return with.step_seconds_mean - without.step_seconds_mean;
    }));
    point.exposed_method = "baseline";
  } else if (runs.ranks > 1) {
    std::vector<double> waits;
    double wait = 0, steps = 0;
    for (const PointRepeat& repeat : runs.repeats) {
      const double n = repeat.seconds / repeat.step_seconds_mean;
      wait += repeat.wait_seconds_mean * n;
      steps += n;
      waits.push_back(repeat.wait_seconds_mean);
    }
    if (!std::isfinite(wait)) return;
    point.exposed_seconds = wait / steps;
    point.exposed_ci95 = student_interval(waits);
    point.exposed_method = "wait";
  }
}

TimeToSolution time_to_solution(const PointRuns& runs, const PointRuns& base,
                                const CurveQuestions& questions) {
  const double steps = *questions.solution_steps;
  const double base_steps = questions.base_solution_steps.value_or(steps);
  if (&runs == &base) return {base_steps * mean_step(base.repeats), 1, std::nullopt, std::nullopt};
  const RepeatPairs pairs(runs.repeats, base.repeats);
  TimeToSolution solution;
  solution.seconds = steps * mean_step(runs.repeats);
  solution.speedup = base_steps * mean_step(pairs.theirs) / (steps * mean_step(pairs.ours));
  const auto per_step = log_interval(pairs.each([](const auto& ours, const auto& theirs) {
    return theirs.step_seconds_mean / ours.step_seconds_mean;
  }));
  if (per_step)
    solution.speedup_ci95 =
        Interval{per_step->lo * base_steps / steps, per_step->hi * base_steps / steps};
  return solution;
}

TargetLoss target_loss(const std::vector<PointRepeat>& repeats) {
  TargetLoss target{true, 0, 0};
  const auto n = static_cast<double>(repeats.size());
  for (const PointRepeat& repeat : repeats) {
    if (!repeat.target_steps || !repeat.target_seconds) return {};
    target.steps += *repeat.target_steps / n;
    target.seconds += *repeat.target_seconds / n;
  }
  return target;
}

/// What follows from the number of nodes, cores or GPUs, where it is known.
void set_efficiency(ScalingPoint& point, const PointRuns& base, Resource resource) {
  const auto base_resources = resources_of(base, resource);
  if (!point.resources || !base_resources) return;
  const double resources = static_cast<double>(*point.resources) / *base_resources;
  point.efficiency = point.speedup / resources;
  if (point.speedup_ci95)
    point.efficiency_ci95 =
        Interval{point.speedup_ci95->lo / resources, point.speedup_ci95->hi / resources};
  if (point.solution) point.solution->efficiency = point.solution->speedup / resources;
}

ScalingPoint make_point(const PointRuns& runs, const PointRuns& base,
                        const CurveQuestions& questions) {
  ScalingPoint point;
  point.ranks = runs.ranks;
  point.throughput = total(runs.repeats).rate();
  point.ci95 = throughput_interval(runs.repeats);
  const RepeatPairs pairs(runs.repeats, base.repeats);
  point.speedup = total(pairs.ours).rate() / total(pairs.theirs).rate();
  if (&runs != &base) point.speedup_ci95 = log_interval(pairs.each(ratio_of_rates));
  if (questions.solution_steps) point.solution = time_to_solution(runs, base, questions);
  if (questions.target_loss) point.target = target_loss(runs.repeats);
  point.resources = resources_of(runs, questions.resource);
  set_efficiency(point, base, questions.resource);
  set_exposed(point, runs);
  point.repeats = runs.repeats;
  point.repeats.insert(point.repeats.end(), runs.baselines.begin(), runs.baselines.end());
  return point;
}

constexpr double kDip = 0.95;

std::optional<Trend> trend_of(const ScalingPoint& before, const ScalingPoint& point,
                              const ScalingPoint& after) {
  if (!before.efficiency || !point.efficiency || !after.efficiency) return std::nullopt;
  const double share = std::log(static_cast<double>(point.ranks) / before.ranks) /
                       std::log(static_cast<double>(after.ranks) / before.ranks);
  const double expected = *before.efficiency + share * (*after.efficiency - *before.efficiency);
  const bool below = *point.efficiency < kDip * expected && *point.efficiency < *after.efficiency;
  return Trend{expected, below && (!point.efficiency_ci95 || point.efficiency_ci95->hi < expected)};
}

}  // namespace

std::vector<PointRuns> numbered(std::vector<PointRuns> points) {
  for (PointRuns& point : points)
    for (auto* repeats : {&point.repeats, &point.baselines})
      for (std::size_t i = 0; i < repeats->size(); ++i)
        if (auto& number = (*repeats)[i].number; number == 0)
          number = static_cast<std::int64_t>(i) + 1;
  return points;
}

std::optional<int> resources_of(const PointRuns& runs, Resource resource) {
  if (resource == Resource::rank) return runs.ranks;
  if (runs.repeats.empty()) return std::nullopt;
  for (const PointRepeat& repeat : runs.repeats)
    if (repeat.resources != runs.repeats.front().resources) return std::nullopt;
  return runs.repeats.front().resources;
}

ScalingCurve make_scaling_curve(const std::string& unit, const std::string& scaling,
                                std::vector<PointRuns> points, const CurveQuestions& questions) {
  check_rounds(points, questions.repeat_unit);
  points = numbered(std::move(points));
  std::ranges::sort(points, {}, &PointRuns::ranks);
  const PointRuns& base = points.front();
  ScalingCurve curve{unit, scaling, base.ranks, total(base.repeats).rate(), {}};
  for (const PointRuns& point : points) curve.points.push_back(make_point(point, base, questions));
  for (std::size_t i = 1; i + 1 < curve.points.size(); ++i)
    curve.points[i].trend = trend_of(curve.points[i - 1], curve.points[i], curve.points[i + 1]);
  return curve;
}

PointRepeat point_repeat(const Json& run, const std::string& path, bool baseline,
                         Resource resource) {
  PointRepeat repeat;
  repeat.run_id = run.at("id");
  repeat.run_path = path;
  repeat.baseline = baseline;
  const auto steps = static_cast<double>(run.at("step_seconds").at("samples").size());
  repeat.units = run.at("units_per_step").get<double>() * steps;
  repeat.seconds = repeat.units / run.at("throughput").at("mean").get<double>();
  repeat.step_seconds_mean = repeat.seconds / steps;
  for (const auto& rank : run.at("ranks")) {
    const Json& wait = rank.at("wait_seconds_mean");
    repeat.wait_seconds_mean +=
        (wait.is_null() ? std::numeric_limits<double>::quiet_NaN() : wait.get<double>()) /
        static_cast<double>(run.at("ranks").size());
  }
  repeat.resources = count_resources(run, resource);
  const auto loss = run.find("loss");
  if (loss == run.end() || !loss->is_object()) return repeat;
  const Json target = loss->value("target", Json());
  if (target.is_object() && target.at("reached") == true) {
    repeat.target_steps = target.at("steps").get<double>();
    repeat.target_seconds = target.at("seconds").get<double>();
  }
  return repeat;
}

namespace {

/// Throughputs of the repeats with communication by number; in records of before they had one, by
/// place.
std::map<std::int64_t, double> throughputs(const Json& point) {
  std::map<std::int64_t, double> rates;
  for (const Json& repeat : point.at("repeats")) {
    if (repeat.at("baseline").get<bool>()) continue;
    const Json number = repeat.value("repeat", Json());
    rates[number.is_null() ? static_cast<std::int64_t>(rates.size()) + 1
                           : number.get<std::int64_t>()] = repeat.at("throughput");
  }
  return rates;
}

CurveRatio ratio_of(const Json& point, const Json& reference) {
  CurveRatio made;
  made.ranks = point.at("ranks");
  made.ratio = point.at("throughput").get<double>() / reference.at("throughput").get<double>();
  const auto ours = throughputs(point), theirs = throughputs(reference);
  std::vector<double> ratios;
  for (const auto& [number, rate] : ours)
    if (const auto other = theirs.find(number); other != theirs.end())
      ratios.push_back(rate / other->second);
  if (ours.size() == theirs.size() && ratios.size() == ours.size())
    made.ci95 = log_interval(ratios);
  return made;
}

}  // namespace

std::vector<CurveRatio> curve_ratios(const Json& curve, const Json& reference) {
  std::vector<CurveRatio> ratios;
  for (const Json& point : curve.at("points"))
    for (const Json& other : reference.at("points"))
      if (point.at("ranks") == other.at("ranks")) ratios.push_back(ratio_of(point, other));
  return ratios;
}

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
