// Compares what jobs do side by side with what each does alone.
#include "analysis/instances/instances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "analysis/diagnosis/diagnose.hpp"
#include "config/text.hpp"
#include "measure/statistics.hpp"
#include "models/catalog.hpp"
#include "result/inference_record.hpp"

namespace scalemark {

MeasuredInstance measured_instance(const record::Measured& job, std::vector<double> latency,
                                   std::size_t slot, const Window& window) {
  MeasuredInstance result;
  result.slot = slot;
  result.run_id = job.id;
  result.throughput = job.throughput->mean;
  result.units = result.throughput * *job.wall_seconds;
  result.latency = std::move(latency);
  result.window = window;
  return result;
}

LaunchFigures launch_figures(const std::vector<MeasuredInstance>& instances) {
  LaunchFigures figures;
  if (instances.empty()) return figures;
  Window span = instances.front().window, common = span;
  double units = 0;
  for (const MeasuredInstance& instance : instances) {
    const Window& window = instance.window;
    span = {std::min(span.start, window.start), std::max(span.end, window.end)};
    common = {std::max(common.start, window.start), std::min(common.end, window.end)};
    units += instance.units;
    figures.sum_of_rates += instance.throughput;
  }
  figures.throughput = units / (span.end - span.start);
  figures.overlap = std::max(0., common.end - common.start) / (span.end - span.start);
  return figures;
}

std::vector<std::vector<std::size_t>> slot_sets(const InstancesPlan& plan) {
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) sets.push_back({slot});
  for (const std::int64_t instances : plan.instances) {
    if (instances < 2) continue;
    sets.emplace_back(static_cast<std::size_t>(instances));
    std::iota(sets.back().begin(), sets.back().end(), std::size_t{0});
  }
  return sets;
}

std::string instances_hash(const InstancesPlan& plan) {
  nlohmann::json keys = hashed_config(plan.config.config, plan.ranks, plan.config.command);
  keys["job"] = plan.config.command == Command::infer ? "infer" : "run";
  keys["instances"] = plan.instances.back();
  keys["repeats"] = plan.repeats;
  return sha256_hex(keys.dump());
}

namespace {

/// What was measured on one set of slots, over all repeats.
struct SlotGroup {
  std::vector<const InstanceLaunch*> launches;  ///< in their order
  Outcome outcome = {};

  std::vector<double> each(double LaunchFigures::*figure) const {
    std::vector<double> values;
    for (const InstanceLaunch* launch : launches)
      values.push_back(launch_figures(launch->instances).*figure);
    return values;
  }
  /// Returns the rate of the instance at `index`, mean over the repeats.
  double rate(std::size_t index) const {
    std::vector<double> rates;
    for (const InstanceLaunch* launch : launches)
      rates.push_back(launch->instances[index].throughput);
    return mean(rates);
  }
  /// Steps or queries of the instance at `index` in all repeats.
  std::vector<double> latency(std::size_t index) const {
    std::vector<double> all;
    for (const InstanceLaunch* launch : launches) {
      const auto& samples = launch->instances[index].latency;
      all.insert(all.end(), samples.begin(), samples.end());
    }
    return all;
  }
};

bool uses(const InstanceLaunch& launch, const std::vector<std::size_t>& slots) {
  return std::ranges::equal(launch.instances, slots, {}, &MeasuredInstance::slot);
}

SlotGroup group_of(const std::vector<InstanceLaunch>& launches,
                   const std::vector<std::size_t>& slots, std::int64_t repeats) {
  SlotGroup group;
  for (const InstanceLaunch& launch : launches) {
    if (!uses(launch, slots)) continue;
    group.launches.push_back(&launch);
    if (group.outcome.ok()) group.outcome = launch.outcome;
  }
  if (group.outcome.ok() && static_cast<std::int64_t>(group.launches.size()) < repeats)
    group.outcome = {Status::interrupted, "stopped before all repeats were measured"};
  return group;
}

/// The value of what ended well, else why there is none.
template <typename T>
Known<T> known(const Outcome& outcome, T value) {
  return outcome.ok() ? Known<T>(std::move(value)) : Known<T>(Unknown{outcome.reason});
}

record::LatencyQuantiles quantiles(const std::vector<double>& samples) {
  const auto at = [&](double q) -> Known<double> {
    const std::size_t least = samples_for_quantile(q);
    if (samples.size() >= least) return quantile(samples, q);
    return Unknown{fmt::format("fewer than {} steps or queries (--num_batches)", least)};
  };
  return {at(0.50), at(0.90), at(0.99)};
}

record::Place told_place(const SlotPlace& place) {
  record::Place made;
  made.kind = place.kind;
  made.cpus = format_cpu_list(place.cpus);
  made.numa = place.numa;
  const bool device = place.kind != SlotPlace::Kind::cpu;
  const Unknown why{device ? "a device of another host" : "a slot of CPUs alone"};
  made.gpu_uuid = device ? Known(place.uuid) : why;
  made.gpu_name = place.device_name.empty() ? why : Known(place.device_name);
  made.host = place.host.empty() ? host_name() : place.host;
  return made;
}

/// What the places of a slot have in common.
record::Slot slot_of(std::size_t number, const std::vector<SlotPlace>& places) {
  const record::Place first = told_place(places.front());
  record::Slot slot{first.kind, first.cpus, first.numa, first.gpu_uuid, first.gpu_name, number, {}};
  std::ranges::transform(places, std::back_inserter(slot.places.emplace()), told_place);
  if (places.size() == 1) return slot;
  slot.cpus = slot.gpu_uuid = slot.gpu_name = Unknown{"a slot of several places"};
  slot.numa.clear();
  if (!std::ranges::all_of(
          places, [&](const SlotPlace& place) { return place.host == places.front().host; }))
    return slot;
  std::set<int> cpus, numa;
  for (const SlotPlace& place : places) {
    cpus.insert(place.cpus.begin(), place.cpus.end());
    numa.insert(place.numa.begin(), place.numa.end());
  }
  slot.cpus = format_cpu_list({cpus.begin(), cpus.end()});
  slot.numa.assign(numa.begin(), numa.end());
  return slot;
}

record::LaunchedJob job_of(const MeasuredInstance& result, const Outcome& outcome, double first) {
  record::LaunchedJob job;
  job.slot = result.slot;
  job.run = known_text(result.run_id);
  job.path = known_text(result.run_path);
  job.log = known_text(result.log_path);
  job.throughput = known(outcome, result.throughput);
  job.units = known(outcome, result.units);
  job.window_seconds =
      known(outcome, Interval{result.window.start - first, result.window.end - first});
  job.latency_seconds = known(outcome, quantiles(result.latency));
  return job;
}

record::LaunchOfJobs launch_of(const InstanceLaunch& launch) {
  const LaunchFigures figures = launch_figures(launch.instances);
  const Outcome& outcome = launch.outcome;
  record::LaunchOfJobs made{launch.repeat,
                            outcome.status,
                            outcome.reason,
                            known(outcome, figures.throughput),
                            known(outcome, figures.sum_of_rates),
                            known(outcome, figures.overlap),
                            {}};
  double first = launch.instances.front().window.start;
  for (const MeasuredInstance& result : launch.instances)
    first = std::min(first, result.window.start);
  for (const MeasuredInstance& result : launch.instances)
    made.instances.push_back(job_of(result, outcome, first));
  return made;
}

std::vector<record::LaunchOfJobs> repeats_of(const SlotGroup& group) {
  std::vector<record::LaunchOfJobs> repeats;
  for (const InstanceLaunch* launch : group.launches) repeats.push_back(launch_of(*launch));
  return repeats;
}

record::SlotAlone alone_of(std::size_t slot, const SlotGroup& group) {
  const Outcome& outcome = group.outcome;
  record::SlotAlone alone{slot,
                          outcome.status,
                          outcome.reason,
                          Unknown{outcome.reason},
                          Unknown{outcome.reason},
                          repeats_of(group)};
  if (!outcome.ok()) return alone;
  alone.throughput = group.rate(0);
  alone.latency_seconds = quantiles(group.latency(0));
  return alone;
}

record::SlotOfPoint slot_of_point(const SlotGroup& group, const record::SlotAlone& alone) {
  record::SlotOfPoint made;
  made.slot = alone.slot;
  made.throughput = group.rate(alone.slot);
  made.alone = alone.throughput;
  made.ratio = alone.throughput ? Known(made.throughput / *alone.throughput) : alone.throughput;
  made.latency_seconds = quantiles(group.latency(alone.slot));
  made.alone_latency_seconds = alone.latency_seconds;
  return made;
}

/// A point of `instances`, of slots that were measured `alone` too.
record::InstancesPoint point_of(const SlotGroup& group, std::size_t instances,
                                const std::vector<record::SlotAlone>& alone) {
  record::InstancesPoint point;
  point.instances = instances;
  point.status = group.outcome.status;
  point.reason = group.outcome.reason;
  point.repeats = repeats_of(group);
  if (const Unknown why{group.outcome.reason}; !group.outcome.ok()) {
    point.cumulative = why;
    point.speedup = point.efficiency = point.overlap = why;
    point.overlaps_enough = why;
    return point;
  }
  const auto throughputs = group.each(&LaunchFigures::throughput);
  const double together = mean(throughputs);
  const double rates = mean(group.each(&LaunchFigures::sum_of_rates));
  point.cumulative =
      record::CumulativeRate{together, {log_interval(throughputs, together), ""}, rates};
  if (const auto& base = alone.front().throughput) point.speedup = together / *base;
  const auto own = std::span(alone).first(instances);
  if (std::ranges::all_of(own, &Known<double>::has_value, &record::SlotAlone::throughput)) {
    double all_alone = 0;
    for (const record::SlotAlone& slot : own) all_alone += *slot.throughput;
    point.efficiency = rates / all_alone;
  }
  point.overlap = std::ranges::min(group.each(&LaunchFigures::overlap));
  point.overlaps_enough = *point.overlap >= kLeastOverlap;
  for (const record::SlotAlone& slot : own)
    point.per_instance.push_back(slot_of_point(group, slot));
  return point;
}

std::vector<std::string> overlap_warnings(const std::vector<record::InstancesPoint>& points) {
  std::vector<std::string> warnings;
  for (const record::InstancesPoint& point : points)
    if (point.overlaps_enough == false)
      warnings.push_back(fmt::format(
          "{} instances: the measured windows overlap by {:.3f} only (limit {}): give all the same "
          "time, --max_seconds S with a large --num_batches",
          point.instances, *point.overlap, kLeastOverlap));
  return warnings;
}

}  // namespace

InstancesResult make_instances_record(const RecordContext& context, const InstancesPlan& plan,
                                      const std::vector<InstanceLaunch>& launches,
                                      const Outcome& outcome) {
  const LoadedConfig& job = context.config;
  InstancesResult result;
  set_surroundings(result, "instances", context, outcome);
  result.job = job.command == Command::infer ? "infer" : "run";
  result.model = job.config.model;
  result.unit = unit_of(job.config);
  result.ranks_per_instance = plan.ranks;
  result.least_overlap = kLeastOverlap;
  update(result.config, plan.own_config);
  result.config_hash = instances_hash(plan);
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    result.slots.push_back(slot_of(slot, plan.slots[slot].places));
    result.alone.push_back(alone_of(slot, group_of(launches, {slot}, plan.repeats)));
  }
  for (const std::int64_t instances : plan.instances) {
    std::vector<std::size_t> slots(static_cast<std::size_t>(instances));
    std::iota(slots.begin(), slots.end(), std::size_t{0});
    result.points.push_back(
        point_of(group_of(launches, slots, plan.repeats), slots.size(), result.alone));
  }
  std::ranges::move(overlap_warnings(result.points), std::back_inserter(result.warnings));
  diagnosis::add_findings(result);
  return result;
}

}  // namespace scalemark
