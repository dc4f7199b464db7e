// Throughput, speedup, efficiency and exposed communication of a curve, with their intervals: pure
// functions.
#include "analysis/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "error.hpp"

namespace scalemark {
namespace {

double throughput(const PointRepeat& repeat) { return repeat.units / repeat.seconds; }

/// All units over all seconds: a long repeat weighs more than a short one.
double total_throughput(const std::vector<PointRepeat>& repeats) {
  double units = 0, seconds = 0;
  for (const PointRepeat& repeat : repeats) {
    units += repeat.units;
    seconds += repeat.seconds;
  }
  return units / seconds;
}

/// Total seconds over total steps.
double mean_step(const std::vector<PointRepeat>& repeats) {
  double seconds = 0, steps = 0;
  for (const PointRepeat& repeat : repeats) {
    seconds += repeat.seconds;
    steps += repeat.seconds / repeat.step_seconds_mean;
  }
  return seconds / steps;
}

/// Student's t on logarithms, so that ratios and their inverses are treated alike and no bound is
/// negative.
std::optional<Interval> log_interval(const std::vector<double>& logs) {
  const auto interval = student_interval(logs);
  if (!interval) return std::nullopt;
  return Interval{std::exp(interval->lo), std::exp(interval->hi)};
}

std::optional<Interval> throughput_interval(const std::vector<PointRepeat>& repeats) {
  std::vector<double> logs;
  for (const PointRepeat& repeat : repeats) logs.push_back(std::log(throughput(repeat)));
  return log_interval(logs);
}

/// Pairing by round takes out what a round has in common: a machine that was slow for a while.
std::optional<Interval> ratio_interval(const std::vector<PointRepeat>& repeats,
                                       const std::vector<PointRepeat>& base) {
  std::vector<double> logs;
  for (std::size_t round = 0; round < repeats.size(); ++round)
    logs.push_back(std::log(throughput(repeats[round]) / throughput(base[round])));
  return log_interval(logs);
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

void check(const std::vector<PointRuns>& points) {
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

void set_exposed(ScalingPoint& point, const PointRuns& runs) {
  if (!runs.baselines.empty()) {
    point.baseline_throughput = total_throughput(runs.baselines);
    point.exposed_seconds = mean_step(runs.repeats) - mean_step(runs.baselines);
    point.exposed_method = "baseline";
  } else if (runs.ranks > 1) {
    double wait = 0, steps = 0;
    for (const PointRepeat& repeat : runs.repeats) {
      const double n = repeat.seconds / repeat.step_seconds_mean;
      wait += repeat.wait_seconds_mean * n;
      steps += n;
    }
    point.exposed_seconds = wait / steps;
    point.exposed_method = "wait";
  }
}

ScalingPoint make_point(const PointRuns& runs, const PointRuns& base) {
  ScalingPoint point;
  point.ranks = runs.ranks;
  point.throughput = total_throughput(runs.repeats);
  point.ci95 = throughput_interval(runs.repeats);
  point.speedup = point.throughput / total_throughput(base.repeats);
  const double resources = static_cast<double>(runs.ranks) / base.ranks;
  point.efficiency = point.speedup / resources;
  if (&runs != &base) point.speedup_ci95 = ratio_interval(runs.repeats, base.repeats);
  if (point.speedup_ci95)
    point.efficiency_ci95 =
        Interval{point.speedup_ci95->lo / resources, point.speedup_ci95->hi / resources};
  set_exposed(point, runs);
  point.repeats = runs.repeats;
  point.repeats.insert(point.repeats.end(), runs.baselines.begin(), runs.baselines.end());
  return point;
}

}  // namespace

ScalingCurve make_scaling_curve(const std::string& unit, const std::string& scaling,
                                const std::vector<PointRuns>& points) {
  check(points);
  std::vector<const PointRuns*> ascending;
  for (const PointRuns& point : points) ascending.push_back(&point);
  std::ranges::sort(ascending, {}, [](const PointRuns* point) { return point->ranks; });

  const PointRuns& base = *ascending.front();
  ScalingCurve curve{unit, scaling, base.ranks, total_throughput(base.repeats), {}};
  for (const PointRuns* point : ascending) curve.points.push_back(make_point(*point, base));
  return curve;
}

}  // namespace scalemark
