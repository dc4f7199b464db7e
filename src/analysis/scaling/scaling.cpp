// Throughput, speedup, efficiency and exposed communication of a curve, with their intervals: pure
// functions.
#include "analysis/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

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

/// Pairing by round takes out what a round has in common: a machine that was slow for a while.
template <typename Value>
std::optional<Interval> ratio_interval(const std::vector<PointRepeat>& repeats,
                                       const std::vector<PointRepeat>& base, Value value) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < repeats.size(); ++round)
    ratios.push_back(value(repeats[round]) / value(base[round]));
  return log_interval(ratios);
}

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

void check_rounds(const std::vector<PointRuns>& points) {
  if (points.empty())
    throw RunError("scaling curve: there are no points; at least one rank count is needed");
  const std::size_t rounds = points.front().repeats.size();
  for (const PointRuns& point : points) {
    if (point.repeats.empty())
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has no repeats", point.ranks));
    if (point.repeats.size() != rounds)
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has {} repeats, that of {} ranks has "
                      "{}; every round must measure every point",
                      point.ranks, point.repeats.size(), points.front().ranks, rounds));
    if (!point.baselines.empty() && point.baselines.size() != rounds)
      throw RunError(
          fmt::format("scaling curve: the point of {} ranks has {} repeats but {} without "
                      "communication; each needs one or none has any",
                      point.ranks, rounds, point.baselines.size()));
    check_repeats(point, point.repeats, "repeat");
    check_repeats(point, point.baselines, "baseline");
  }
}

/// A round's step beyond that of its baseline, or what it waited.
std::optional<Interval> exposed_interval(const PointRuns& runs) {
  std::vector<double> exposed;
  for (std::size_t round = 0; round < runs.repeats.size(); ++round) {
    const PointRepeat& repeat = runs.repeats[round];
    exposed.push_back(runs.baselines.empty()
                          ? repeat.wait_seconds_mean
                          : repeat.step_seconds_mean - runs.baselines[round].step_seconds_mean);
  }
  return student_interval(exposed);
}

void set_exposed(ScalingPoint& point, const PointRuns& runs) {
  if (!runs.baselines.empty()) {
    point.baseline_throughput = total(runs.baselines).rate();
    point.exposed_seconds = mean_step(runs.repeats) - mean_step(runs.baselines);
    point.exposed_method = "baseline";
  } else if (runs.ranks > 1) {
    double wait = 0, steps = 0;
    for (const PointRepeat& repeat : runs.repeats) {
      const double n = repeat.seconds / repeat.step_seconds_mean;
      wait += repeat.wait_seconds_mean * n;
      steps += n;
    }
    if (!std::isfinite(wait)) return;
    point.exposed_seconds = wait / steps;
    point.exposed_method = "wait";
  }
  if (point.exposed_seconds) point.exposed_ci95 = exposed_interval(runs);
}

TimeToSolution time_to_solution(const PointRuns& runs, const PointRuns& base,
                                const CurveQuestions& questions) {
  const double steps = *questions.solution_steps;
  const double base_steps = questions.base_solution_steps.value_or(steps);
  const double base_seconds = base_steps * mean_step(base.repeats);
  if (&runs == &base) return {base_seconds, 1, std::nullopt, std::nullopt};
  TimeToSolution solution;
  solution.seconds = steps * mean_step(runs.repeats);
  solution.speedup = base_seconds / solution.seconds;
  const auto per_step = ratio_interval(
      runs.repeats, base.repeats, [](const PointRepeat& r) { return 1 / r.step_seconds_mean; });
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
  point.speedup = point.throughput / total(base.repeats).rate();
  if (&runs != &base)
    point.speedup_ci95 = ratio_interval(runs.repeats, base.repeats, std::mem_fn(&Work::rate));
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

std::optional<int> resources_of(const PointRuns& runs, Resource resource) {
  if (resource == Resource::rank) return runs.ranks;
  if (runs.repeats.empty()) return std::nullopt;
  for (const PointRepeat& repeat : runs.repeats)
    if (repeat.resources != runs.repeats.front().resources) return std::nullopt;
  return runs.repeats.front().resources;
}

ScalingCurve make_scaling_curve(const std::string& unit, const std::string& scaling,
                                const std::vector<PointRuns>& points,
                                const CurveQuestions& questions) {
  check_rounds(points);
  std::vector<const PointRuns*> ascending;
  for (const PointRuns& point : points) ascending.push_back(&point);
  std::ranges::sort(ascending, {}, [](const PointRuns* point) { return point->ranks; });

  const PointRuns& base = *ascending.front();
  ScalingCurve curve{unit, scaling, base.ranks, total(base.repeats).rate(), {}};
  for (const PointRuns* point : ascending)
    curve.points.push_back(make_point(*point, base, questions));
  for (std::size_t i = 1; i + 1 < curve.points.size(); ++i)
    curve.points[i].trend = trend_of(curve.points[i - 1], curve.points[i], curve.points[i + 1]);
  return curve;
}

}  // namespace scalemark
