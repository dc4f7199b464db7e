// See instances.hpp.
#include "analysis/instances/instances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/diagnosis/diagnose.hpp"
#include "config/text.hpp"
#include "measure/statistics.hpp"
#include "models/catalog.hpp"
#include "result/inference_record.hpp"
#include "result/warnings.hpp"

namespace scalemark {

InstanceResult instance_result(const Json& record, std::size_t slot, const Window& window) {
  InstanceResult result;
  result.slot = slot;
  result.run_id = record.at("id");
  result.throughput = record.at("throughput").at("mean");
  result.units = result.throughput * record.at("wall_seconds").get<double>();
  const char* times = record.at("kind") == "inference" ? "latency_seconds" : "step_seconds";
  result.latency = record.at(times).at("samples").get<std::vector<double>>();
  result.window = window;
  return result;
}

LaunchFigures launch_figures(const std::vector<InstanceResult>& instances) {
  LaunchFigures figures;
  if (instances.empty()) return figures;
  Window span = instances.front().window, common = span;
  double units = 0;
  for (const InstanceResult& instance : instances) {
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
  /// Of the instance at `index`, mean over the repeats.
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
  return std::ranges::equal(launch.instances, slots, {}, &InstanceResult::slot);
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

class Writer {
 public:
  Writer(Json& record, const InstancesPlan& plan, const std::vector<InstanceLaunch>& launches)
      : record_(record), plan_(plan) {
    for (std::size_t slot = 0; slot < plan.slots.size(); ++slot)
      alone_.push_back(group_of(launches, {slot}, plan.repeats));
  }

  void slots() {
    Json& list = record_["slots"] = Json::array();
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const std::vector<SlotPlace>& places = plan_.slots[i].places;
      Json entry = place_json(places.front(), "slots.");
      Json each = Json::array();
      for (const SlotPlace& place : places) {
        Json one = place_json(place, "slots.places.");
        one["host"] = place.host.empty() ? host_name() : place.host;
        each.push_back(std::move(one));
      }
      if (places.size() > 1) join_places(entry, places);
      entry["slot"] = i;
      entry["places"] = std::move(each);
      list.push_back(std::move(entry));
    }
  }

  void alone() {
    record_["alone"] = Json::array();
    for (std::size_t slot = 0; slot < alone_.size(); ++slot) {
      const SlotGroup& group = alone_[slot];
      Json entry{{"slot", slot},
                 {"status", to_string(group.outcome.status)},
                 {"reason", group.outcome.reason}};
      const bool ok = group.outcome.ok();
      entry["throughput"] = ok ? Json(group.rate(0)) : Json(nullptr);
      entry["latency_seconds"] =
          ok ? quantiles(group.latency(0), "alone.latency_seconds") : Json(nullptr);
      for (const char* key : {"throughput", "latency_seconds"})
        if (!ok) add_reason(record_, std::string("alone.") + key, group.outcome.reason);
      entry["repeats"] = repeats(group, "alone.repeats");
      record_["alone"].push_back(std::move(entry));
    }
  }

  void points(const std::vector<InstanceLaunch>& launches) {
    record_["points"] = Json::array();
    for (const std::int64_t instances : plan_.instances) {
      std::vector<std::size_t> slots(static_cast<std::size_t>(instances));
      std::iota(slots.begin(), slots.end(), std::size_t{0});
      record_["points"].push_back(point(group_of(launches, slots, plan_.repeats), slots.size()));
    }
  }

 private:
  Json place_json(const SlotPlace& place, const std::string& where) {
    const bool device = place.kind != SlotPlace::Kind::cpu;
    Json entry{{"kind", to_string(place.kind)},
               {"cpus", format_cpu_list(place.cpus)},
               {"numa", place.numa},
               {"gpu_uuid", device ? Json(place.uuid) : Json(nullptr)},
               {"gpu_name", null_if_empty(place.device_name)}};
    for (const char* key : {"gpu_uuid", "gpu_name"})
      if (entry[key].is_null())
        add_reason(record_, where + key,
                   device ? "a device of another host" : "a slot of CPUs alone");
    return entry;
  }

  /// What the places of a slot have in common.
  void join_places(Json& entry, const std::vector<SlotPlace>& places) {
    const bool one_host = std::ranges::all_of(
        places, [&](const SlotPlace& place) { return place.host == places.front().host; });
    std::set<int> cpus, numa;
    for (const SlotPlace& place : places) {
      cpus.insert(place.cpus.begin(), place.cpus.end());
      numa.insert(place.numa.begin(), place.numa.end());
    }
    entry["cpus"] = one_host ? Json(format_cpu_list({cpus.begin(), cpus.end()})) : Json(nullptr);
    entry["numa"] = one_host ? Json(numa) : Json::array();
    entry["gpu_uuid"] = entry["gpu_name"] = nullptr;
    for (const char* key : {"cpus", "gpu_uuid", "gpu_name"})
      if (entry[key].is_null())
        add_reason(record_, std::string("slots.") + key, "a slot of several places");
  }

  Json point(const SlotGroup& group, std::size_t instances) {
    Json entry{{"instances", instances},
               {"status", to_string(group.outcome.status)},
               {"reason", group.outcome.reason}};
    if (group.outcome.ok()) {
      fill(entry, group, instances);
    } else {
      for (const char* key :
           {"cumulative", "speedup", "efficiency", "overlap", "overlaps_enough"}) {
        entry[key] = nullptr;
        add_reason(record_, std::string("points.") + key, group.outcome.reason);
      }
      entry["per_instance"] = Json::array();
    }
    entry["repeats"] = repeats(group, "points.repeats");
    return entry;
  }

  void fill(Json& entry, const SlotGroup& group, std::size_t instances) {
    const auto together = group.each(&LaunchFigures::throughput);
    const auto interval = log_interval(together);
    const double rates = mean(group.each(&LaunchFigures::sum_of_rates));
    entry["cumulative"] = {
        {"mean", mean(together)}, {"ci95", or_null(interval)}, {"sum_of_rates", rates}};
    if (!interval)
      add_reason(record_, "points.cumulative.ci95",
                 "one repeat has no interval: ask for more with --repeats");
    std::optional<double> all_alone = 0;
    for (std::size_t slot = 0; slot < instances && all_alone; ++slot)
      all_alone = alone_[slot].outcome.ok() ? std::optional(*all_alone + alone_[slot].rate(0))
                                            : std::nullopt;
    const bool base = alone_.front().outcome.ok();
    entry["speedup"] = base ? Json(mean(together) / alone_.front().rate(0)) : Json(nullptr);
    entry["efficiency"] = all_alone ? Json(rates / *all_alone) : Json(nullptr);
    if (!base) add_reason(record_, "points.speedup", "slot 0 alone was not measured");
    if (!all_alone) add_reason(record_, "points.efficiency", "not every slot was measured alone");
    const double overlap = std::ranges::min(group.each(&LaunchFigures::overlap));
    entry["overlap"] = overlap;
    entry["overlaps_enough"] = overlap >= kLeastOverlap;
    entry["per_instance"] = Json::array();
    for (std::size_t slot = 0; slot < instances; ++slot)
      entry["per_instance"].push_back(instance(group, slot));
  }

  Json instance(const SlotGroup& group, std::size_t slot) {
    const std::string place = "points.per_instance.";
    const SlotGroup& alone = alone_[slot];
    const bool known = alone.outcome.ok();
    const double rate = group.rate(slot);
    Json entry{{"slot", slot}, {"throughput", rate}};
    entry["alone"] = known ? Json(alone.rate(0)) : Json(nullptr);
    entry["ratio"] = known ? Json(rate / alone.rate(0)) : Json(nullptr);
    entry["latency_seconds"] = quantiles(group.latency(slot), place + "latency_seconds");
    entry["alone_latency_seconds"] =
        known ? quantiles(alone.latency(0), place + "alone_latency_seconds") : Json(nullptr);
    for (const char* key : {"alone", "ratio", "alone_latency_seconds"})
      if (!known) add_reason(record_, place + key, alone.outcome.reason);
    return entry;
  }

  Json quantiles(const std::vector<double>& samples, const std::string& place) {
    Json entry = Json::object();
    for (const auto& [key, q] : {std::pair{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}}) {
      const std::size_t least = samples_for_quantile(q);
      const bool enough = samples.size() >= least;
      entry[key] = enough ? Json(quantile(samples, q)) : Json(nullptr);
      if (!enough)
        add_reason(record_, place + "." + key,
                   "fewer than " + std::to_string(least) + " steps or queries (--num_batches)");
    }
    return entry;
  }

  Json repeats(const SlotGroup& group, const std::string& place) {
    Json list = Json::array();
    for (const InstanceLaunch* launch : group.launches) {
      const bool ok = launch->outcome.ok();
      const LaunchFigures figures = launch_figures(launch->instances);
      Json entry{{"repeat", launch->repeat},
                 {"status", to_string(launch->outcome.status)},
                 {"reason", launch->outcome.reason}};
      for (const auto& [key, value] : {std::pair{"throughput", figures.throughput},
                                       {"sum_of_rates", figures.sum_of_rates},
                                       {"overlap", figures.overlap}}) {
        entry[key] = ok ? Json(value) : Json(nullptr);
        if (!ok) add_reason(record_, place + "." + key, launch->outcome.reason);
      }
      entry["instances"] = Json::array();
      double first = launch->instances.front().window.start;
      for (const InstanceResult& result : launch->instances)
        first = std::min(first, result.window.start);
      for (const InstanceResult& result : launch->instances)
        entry["instances"].push_back(result_json(result, *launch, first, place + ".instances."));
      list.push_back(std::move(entry));
    }
    return list;
  }

  Json result_json(const InstanceResult& result, const InstanceLaunch& launch, double first,
                   const std::string& place) {
    const bool ok = launch.outcome.ok();
    Json entry{{"slot", result.slot}};
    entry["run"] = null_if_empty(result.run_id);
    entry["path"] = null_if_empty(result.run_path);
    if (result.run_id.empty()) add_reason(record_, place + "run", "an instance left no record");
    entry["log"] = null_if_empty(result.log_path);
    if (result.run_path.empty())
      add_reason(record_, place + "path",
                 "without a record, or without --output, there is no file");
    if (result.log_path.empty())
      add_reason(record_, place + "log", "kept of launches that are not ok, with --output");
    entry["throughput"] = ok ? Json(result.throughput) : Json(nullptr);
    entry["units"] = ok ? Json(result.units) : Json(nullptr);
    entry["window_seconds"] =
        ok ? Json{result.window.start - first, result.window.end - first} : Json(nullptr);
    entry["latency_seconds"] =
        ok ? quantiles(result.latency, place + "latency_seconds") : Json(nullptr);
    for (const char* key : {"throughput", "units", "window_seconds", "latency_seconds"})
      if (!ok) add_reason(record_, place + key, launch.outcome.reason);
    return entry;
  }

  Json& record_;
  const InstancesPlan& plan_;
  std::vector<SlotGroup> alone_;  ///< by slot
};

std::vector<std::string> overlap_warnings(const Json& record) {
  std::vector<std::string> warnings;
  for (const Json& point : record["points"])
    if (point["overlaps_enough"] == false)
      warnings.push_back(fmt::format(
          "{} instances: the measured windows overlap by {:.3f} only (limit {}): give all the same "
          "time, --max_seconds S with a large --num_batches",
          point["instances"].dump(), point["overlap"].get<double>(), kLeastOverlap));
  return warnings;
}

}  // namespace

Json make_instances_record(const RecordContext& context, const InstancesPlan& plan,
                           const std::vector<InstanceLaunch>& launches, const Outcome& outcome) {
  const LoadedConfig& job = context.config;
  Json record = start_record("instances", context, outcome);
  record["job"] = job.command == Command::infer ? "infer" : "run";
  record["model"] = job.config.model;
  record["unit"] = unit_of(job.config);
  record["ranks_per_instance"] = plan.ranks;
  record["repeat_unit"] = "launch";
  record["least_overlap"] = kLeastOverlap;
  record["config"].update(plan.own_config);
  record["config_hash"] = instances_hash(plan);
  Writer writer(record, plan, launches);
  writer.slots();
  writer.alone();
  writer.points(launches);
  add_warnings(record, overlap_warnings(record));
  diagnosis::add_findings(record);
  return record;
}

}  // namespace scalemark
