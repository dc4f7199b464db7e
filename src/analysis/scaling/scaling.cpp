// Computes speedup and efficiency of a curve, and compares two curves.
#include "analysis/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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
#include "record/write.hpp"
#include "result/run_metrics.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

int threads_of_core(const record::System& system) {
  if (!system.threads || !system.cores) return 1;
  return static_cast<int>(
      std::max<std::int64_t>(1, *system.threads / std::max<std::int64_t>(1, *system.cores)));
}

std::optional<int> count_cores(const RunResult& run) {
  std::map<std::string, std::set<int>> cpus;
  for (const record::RunRank& rank : run.ranks) {
    const auto own = rank.cpus ? parse_cpu_list(*rank.cpus) : std::nullopt;
    if (!own) return std::nullopt;
    cpus[rank.host].insert(own->begin(), own->end());
  }
  const int threads = threads_of_core(run.system);
  int cores = 0;
  for (const auto& [host, numbers] : cpus)
    cores += (static_cast<int>(numbers.size()) + threads - 1) / threads;
  return cores;
}

}  // namespace

std::optional<int> count_resources(const RunResult& run, Resource resource) {
  switch (resource) {
    case Resource::rank:
      break;
    case Resource::node: {
      std::set<std::string> hosts;
      for (const record::RunRank& rank : run.ranks) hosts.insert(rank.host);
      return static_cast<int>(hosts.size());
    }
    case Resource::core:
      return count_cores(run);
    case Resource::gpu:
      return count_gpus(run.ranks);
  }
  return static_cast<int>(run.ranks.size());
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

std::optional<Interval> throughput_interval(const std::vector<PointRepeat>& repeats,
                                            double throughput) {
  std::vector<double> rates;
  for (const PointRepeat& repeat : repeats) rates.push_back(repeat.rate());
  return log_interval(rates, throughput);
}

/// Repeats of two points with the same number, which one round or one pass of a sweep measured:
/// pairing takes out what these have in common, a machine that was slow for a while. All repeats,
/// and no pairs, where no number is in both.
struct RepeatPairs {
  std::vector<PointRepeat> ours, theirs;

  RepeatPairs(const std::vector<PointRepeat>& all_ours,
              const std::vector<PointRepeat>& all_theirs) {
    for (const PointRepeat& repeat : all_ours) {
      const auto partner = std::ranges::find(all_theirs, repeat.repeat, &PointRepeat::repeat);
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
    for (const auto& [what, repeats] : point.without)
      check_repeats(point, repeats, "repeat without a collective");
  }
}

/// Why numbers of a point are unknown.
struct Reasons {
  Unknown repeats, interval, baseline, resources;
};

Reasons reasons_of(int ranks, bool is_base, const CurveQuestions& questions) {
  const bool launches = questions.repeat_unit == RepeatUnit::launch;
  const std::string one_repeat =
      launches ? "one launch, or one repeat in common with the base, has no interval: give the "
                 "sweep more repeats"
               : "one repeat has no interval: ask for more with --repeats";
  return {{one_repeat},
          {is_base ? "the base is compared with itself" : one_repeat},
          {ranks == 1 ? "one rank has nothing to communicate"
           : launches ? "no point of the sweep has these settings without communication"
                      : "no run without communication was asked for"},
          {why_uncounted(questions.resource)}};
}

Known<Interval> known_or(const std::optional<Interval>& interval, const Unknown& why) {
  return {interval, why.why};
}

/// What steps of `repeats` take longer than those of `without`: sets the seconds and their
/// interval.
void set_difference(auto& exposed, const std::vector<PointRepeat>& repeats,
                    const std::vector<PointRepeat>& without, const Unknown& why) {
  const RepeatPairs pairs(repeats, without);
  exposed.exposed_seconds = mean_step(pairs.ours) - mean_step(pairs.theirs);
  exposed.exposed_ci95 =
      known_or(student_interval(pairs.each([](const auto& with, const auto& without) {
                 return with.step_seconds_mean - without.step_seconds_mean;
               })),
               why);
}

/// A step beyond that of the same ranks without communication.
void set_beyond_baseline(record::ScalingPoint& point, const PointRuns& runs, const Unknown& why) {
  point.baseline_throughput = total(runs.baselines).rate();
  set_difference(point, runs.repeats, runs.baselines, why);
  point.exposed_method = std::string("baseline");
}

/// What ranks waited, where all tell.
void set_waits(record::ScalingPoint& point, const PointRuns& runs, const Unknown& why) {
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
  point.exposed_ci95 = known_or(student_interval(waits), why);
  point.exposed_method = std::string("wait");
}

void set_exposed(record::ScalingPoint& point, const PointRuns& runs, const Reasons& why) {
  point.baseline_throughput = point.exposed_seconds = why.baseline;
  point.exposed_ci95 = why.baseline;
  point.exposed_method = why.baseline;
  if (!runs.baselines.empty())
    set_beyond_baseline(point, runs, why.repeats);
  else if (runs.ranks > 1)
    set_waits(point, runs, why.repeats);
}

/// Steps to solution x mean step, and its ratio to the base's.
void set_solution(record::ScalingPoint& point, const PointRuns& runs, const PointRuns& base,
                  const CurveQuestions& questions, const Reasons& why) {
  const Unknown unasked{"no --solution_steps was asked for"};
  point.time_to_solution_seconds = point.time_to_solution_speedup =
      point.time_to_solution_efficiency = unasked;
  point.time_to_solution_speedup_ci95 = unasked;
  if (!questions.solution_steps) return;
  const double steps = *questions.solution_steps;
  const double base_steps = questions.base_solution_steps.value_or(steps);
  point.time_to_solution_efficiency = why.resources;
  point.time_to_solution_speedup_ci95 = why.interval;
  if (&runs == &base) {
    point.time_to_solution_seconds = base_steps * mean_step(base.repeats);
    point.time_to_solution_speedup = 1.;
    return;
  }
  const RepeatPairs pairs(runs.repeats, base.repeats);
  point.time_to_solution_seconds = steps * mean_step(runs.repeats);
  const double of_a_step = mean_step(pairs.theirs) / mean_step(pairs.ours);
  point.time_to_solution_speedup = of_a_step * base_steps / steps;
  const auto ratio_of_steps = [](const auto& ours, const auto& theirs) {
    return theirs.step_seconds_mean / ours.step_seconds_mean;
  };
  if (const auto per_step = log_interval(pairs.each(ratio_of_steps), of_a_step))
    point.time_to_solution_speedup_ci95 =
        Interval{per_step->lo * base_steps / steps, per_step->hi * base_steps / steps};
}

record::PointTarget target_of(const std::vector<PointRepeat>& repeats) {
  double steps = 0, seconds = 0;
  const auto n = static_cast<double>(repeats.size());
  for (const PointRepeat& repeat : repeats) {
    if (!repeat.target_steps || !repeat.target_seconds) return {};
    steps += *repeat.target_steps / n;
    seconds += *repeat.target_seconds / n;
  }
  return {true, steps, seconds};
}

/// What follows from the number of nodes, cores or GPUs, where it is known.
void set_efficiency(record::ScalingPoint& point, const PointRuns& base, Resource resource,
                    const Reasons& why) {
  const auto base_resources = resources_of(base, resource);
  point.efficiency = why.resources;
  point.efficiency_ci95 = point.speedup_ci95 ? why.resources : why.interval;
  if (!point.resources || !base_resources) return;
  const double resources = static_cast<double>(*point.resources) / *base_resources;
  point.efficiency = *point.speedup / resources;
  if (point.speedup_ci95)
    point.efficiency_ci95 =
        Interval{point.speedup_ci95->lo / resources, point.speedup_ci95->hi / resources};
  if (point.time_to_solution_speedup)
    point.time_to_solution_efficiency = *point.time_to_solution_speedup / resources;
}

/// Returns repeats that say why they have no path.
std::vector<record::CurveRepeat> written_repeats(const std::vector<PointRepeat>& repeats,
                                                 RepeatUnit unit) {
  std::vector<record::CurveRepeat> written(repeats.begin(), repeats.end());
  for (record::CurveRepeat& repeat : written) {
    repeat.throughput = repeat.rate();
    // A file that nobody asked for is no fault, but its absence must be explained.
    if (!repeat.path)
      repeat.path =
          Unknown{unit == RepeatUnit::launch ? "no --output, to which it would be relative"
                                             : "no --output: the run records were not written"};
  }
  return written;
}

/// Lists the runs without one collective; of a complete point with what each says.
void set_exposed_collectives(record::ScalingPoint& point, const PointRuns& runs,
                             const CurveQuestions& questions, bool complete) {
  if (runs.without.empty()) {
    point.exposed_collectives = Unknown{
        "no collective was left out alone: that is done with --shard, on several ranks, "
        "beside a run without communication"};
    return;
  }
  const Reasons why = reasons_of(runs.ranks, false, questions);
  point.exposed_collectives.emplace();
  for (const auto& [left_out, repeats] : runs.without) {
    record::ExposedCollective exposed;
    exposed.collective = to_string(left_out);
    exposed.repeats = written_repeats(repeats, questions.repeat_unit);
    if (complete) set_difference(exposed, runs.repeats, repeats, why.repeats);
    point.exposed_collectives->push_back(std::move(exposed));
  }
}

/// What is known of a point whose repeats are not complete, too.
record::ScalingPoint start_point(const PointRuns& runs, const CurveQuestions& questions,
                                 bool complete) {
  const RepeatUnit unit = questions.repeat_unit;
  record::ScalingPoint point;
  point.ranks = runs.ranks;
  point.resources = Unknown{why_uncounted(questions.resource)};
  if (const auto resources = resources_of(runs, questions.resource)) point.resources = *resources;
  point.repeats = written_repeats(runs.repeats, unit);
  std::ranges::move(written_repeats(runs.baselines, unit), std::back_inserter(point.repeats));
  set_exposed_collectives(point, runs, questions, complete);
  return point;
}

record::ScalingPoint make_point(const PointRuns& runs, const PointRuns& base,
                                const CurveQuestions& questions) {
  const Reasons why = reasons_of(runs.ranks, &runs == &base, questions);
  record::ScalingPoint point = start_point(runs, questions, /*complete=*/true);
  point.throughput = total(runs.repeats).rate();
  point.ci95 = known_or(throughput_interval(runs.repeats, *point.throughput), why.repeats);
  const RepeatPairs pairs(runs.repeats, base.repeats);
  point.speedup = total(pairs.ours).rate() / total(pairs.theirs).rate();
  point.speedup_ci95 = why.interval;
  if (&runs != &base)
    point.speedup_ci95 =
        known_or(log_interval(pairs.each(ratio_of_rates), *point.speedup), why.interval);
  set_solution(point, runs, base, questions, why);
  point.target = Unknown{"no --target_loss was asked for"};
  if (questions.target_loss) point.target = target_of(runs.repeats);
  set_efficiency(point, base, questions.resource, why);
  set_exposed(point, runs, why);
  return point;
}

constexpr double kDip = 0.95;
constexpr const char* kNoTrend = "a point with two neighbours has one";

Known<record::Trend> trend_of(const record::ScalingPoint& before, const record::ScalingPoint& point,
                              const record::ScalingPoint& after) {
  if (!before.efficiency || !point.efficiency || !after.efficiency) return Unknown{kNoTrend};
  const auto from = static_cast<double>(before.ranks);
  const double share = std::log(static_cast<double>(point.ranks) / from) /
                       std::log(static_cast<double>(after.ranks) / from);
  const double expected = *before.efficiency + share * (*after.efficiency - *before.efficiency);
  const bool below = *point.efficiency < kDip * expected && *point.efficiency < *after.efficiency;
  return record::Trend{expected,
                       below && (!point.efficiency_ci95 || point.efficiency_ci95->hi < expected)};
}

}  // namespace

std::vector<PointRepeat>& PointRuns::of(bool baseline, LeaveOut leave_out) {
  if (baseline) return baselines;
  return leave_out == LeaveOut::none ? repeats : without[leave_out];
}

std::vector<PointRuns> numbered(std::vector<PointRuns> points) {
  const auto number = [](std::vector<PointRepeat>& repeats) {
    for (std::size_t i = 0; i < repeats.size(); ++i)
      if (repeats[i].repeat == 0) repeats[i].repeat = static_cast<std::int64_t>(i) + 1;
  };
  for (PointRuns& point : points) {
    number(point.repeats);
    number(point.baselines);
    for (auto& [what, repeats] : point.without) number(repeats);
  }
  return points;
}

std::optional<int> resources_of(const PointRuns& runs, Resource resource) {
  if (resource == Resource::rank) return runs.ranks;
  if (runs.repeats.empty()) return std::nullopt;
  for (const PointRepeat& repeat : runs.repeats)
    if (repeat.resources != runs.repeats.front().resources) return std::nullopt;
  return runs.repeats.front().resources;
}

std::vector<record::ScalingPoint> scaling_points(std::vector<PointRuns> points,
                                                 const CurveQuestions& questions) {
  check_rounds(points, questions.repeat_unit);
  points = numbered(std::move(points));
  std::ranges::sort(points, {}, &PointRuns::ranks);
  std::vector<record::ScalingPoint> made;
  for (const PointRuns& point : points)
    made.push_back(make_point(point, points.front(), questions));
  for (record::ScalingPoint& point : made) point.trend = Unknown{kNoTrend};
  for (std::size_t i = 1; i + 1 < made.size(); ++i)
    made[i].trend = trend_of(made[i - 1], made[i], made[i + 1]);
  return made;
}

PointRepeat point_repeat(const RunResult& run, const std::string& path, bool baseline,
                         Resource resource) {
  if (!run.throughput || !run.step_seconds || !run.units_per_step)
    throw ResultError(fmt::format("run {} tells no throughput, step times or units", run.id));
  PointRepeat repeat;
  repeat.run = run.id;
  repeat.path = known_text(path);
  repeat.created_at = known_text(run.created_at);
  repeat.baseline = baseline;
  const auto steps = static_cast<double>(run.step_seconds->samples.size());
  repeat.units = *run.units_per_step * steps;
  repeat.seconds = repeat.units / run.throughput->mean;
  repeat.step_seconds_mean = repeat.seconds / steps;
  for (const record::RunRank& rank : run.ranks)
    repeat.wait_seconds_mean +=
        rank.wait_seconds_mean.value_or(std::numeric_limits<double>::quiet_NaN()) /
        static_cast<double>(run.ranks.size());
  repeat.resources = count_resources(run, resource);
  if (!run.loss || !run.loss->target || !run.loss->target->reached) return repeat;
  const record::TargetLoss& target = *run.loss->target;
  if (target.steps) repeat.target_steps = static_cast<double>(*target.steps);
  if (target.seconds) repeat.target_seconds = *target.seconds;
  return repeat;
}

namespace {

/// Throughputs of the repeats with communication by number; in records of before they had one, by
/// place.
std::map<std::int64_t, double> throughputs(const record::ScalingPoint& point) {
  std::map<std::int64_t, double> rates;
  for (const record::CurveRepeat& repeat : point.repeats) {
    if (repeat.baseline) continue;
    const auto place = static_cast<std::int64_t>(rates.size()) + 1;
    rates[repeat.repeat == 0 ? place : repeat.repeat] = repeat.throughput;
  }
  return rates;
}

CurveRatio ratio_of(const record::ScalingPoint& point, const record::ScalingPoint& reference) {
  CurveRatio made{point.ranks, *point.throughput / *reference.throughput, std::nullopt};
  const auto ours = throughputs(point), theirs = throughputs(reference);
  std::vector<double> ratios;
  for (const auto& [number, rate] : ours)
    if (const auto other = theirs.find(number); other != theirs.end())
      ratios.push_back(rate / other->second);
  if (ours.size() == theirs.size() && ratios.size() == ours.size())
    made.ci95 = log_interval(ratios, made.ratio);
  return made;
}

}  // namespace

std::vector<CurveRatio> curve_ratios(const ScalingCurve& curve, const ScalingCurve& reference) {
  std::vector<CurveRatio> ratios;
  for (const record::ScalingPoint& point : curve.points)
    for (const record::ScalingPoint& other : reference.points)
      if (point.ranks == other.ranks) ratios.push_back(ratio_of(point, other));
  return ratios;
}

namespace {

std::optional<double> as_real(const std::optional<std::int64_t>& steps) {
  return steps ? std::optional(static_cast<double>(*steps)) : std::nullopt;
}

CurveQuestions questions_of(const ResolvedConfig& config, RepeatUnit unit) {
  return {config.resource, as_real(config.solution_steps), as_real(config.base_solution_steps),
          config.target_loss.has_value(), unit};
}

std::vector<record::ScalingPoint> unfinished_points(std::vector<PointRuns> points,
                                                    const CurveQuestions& questions) {
  std::ranges::sort(points, {}, &PointRuns::ranks);
  std::vector<record::ScalingPoint> made;
  for (const PointRuns& runs : points)
    made.push_back(start_point(runs, questions, /*complete=*/false));
  return made;
}

/// Batches come from the configuration: that of the base may be its own.
void set_batch(record::ScalingPoint& point, const ResolvedConfig& config, std::int64_t base_ranks) {
  const BatchPlan batch = plan_batch(point_config(config, point.ranks, base_ranks), point.ranks);
  point.batch_size_per_rank = batch.batch_size_per_rank;
  point.global_batch_size = batch.global_batch_size;
}

/// Where the interval of a point leaves all open: what would help.
void warn_of_noise(ScalingCurve& curve, const record::ScalingPoint& point) {
  constexpr double kWidest = 2;  // between its ends
  if (!point.ci95 || point.ci95->hi <= kWidest * point.ci95->lo) return;
  curve.warnings.push_back(
      fmt::format("too noisy to show anything: {} {} of {} could be {} to {}; more {}, longer ones "
                  "(--num_batches), or a quieter machine (--wait_for_idle 600) would help",
                  four_digits(*point.throughput), curve.unit,
                  counted(static_cast<std::size_t>(point.ranks), "rank"),
                  four_digits(point.ci95->lo), four_digits(point.ci95->hi),
                  curve.repeat_unit == RepeatUnit::launch ? "launches" : "rounds (--repeats 5)"));
}

void warn_of_preflight(ScalingCurve& curve) {
  const std::string warning = preflight_warning(curve.preflight);
  if (!warning.empty()) curve.warnings.push_back(warning);
}

}  // namespace

void set_points(ScalingCurve& curve, const ResolvedConfig& config, int world_size,
                std::vector<PointRuns> points, const NoiseSummary& noise) {
  curve.unit = unit_of(config);
  curve.scaling = config.scaling;
  curve.resource = config.resource;
  curve.config_hash = config_hash(config, world_size);
  const auto disturbed = noise.warnings();
  curve.warnings.insert(curve.warnings.end(), disturbed.begin(), disturbed.end());
  warn_of_preflight(curve);
  points = numbered(std::move(points));
  const CurveQuestions questions = questions_of(config, curve.repeat_unit);
  curve.points = curve.status == Status::ok ? scaling_points(std::move(points), questions)
                                            : unfinished_points(std::move(points), questions);
  if (!curve.points.empty())
    curve.base = {curve.points.front().ranks, curve.points.front().throughput};
  for (record::ScalingPoint& point : curve.points) {
    set_batch(point, config, curve.base.ranks);
    warn_of_noise(curve, point);
  }
}

ScalingCurve make_scaling_record(const RecordContext& context, int world_size,
                                 const std::vector<PointRuns>& points, const NoiseSummary& noise,
                                 const Outcome& outcome) {
  ScalingCurve curve;
  set_context(curve, "scaling", context, outcome);
  set_points(curve, context.config.config, world_size, points, noise);
  return curve;
}

}  // namespace scalemark
