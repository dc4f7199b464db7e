// Throughput, speedup, efficiency and exposed communication of a curve, with their intervals: pure
// functions.
#include "analysis/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/intervals.hpp"
#include "error.hpp"

namespace scalemark {
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

}  // namespace scalemark
