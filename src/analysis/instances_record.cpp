// The instances record: what docs/schema/instances.schema.json asks for.
#include <algorithm>
#include <numeric>
#include <optional>

#include "analysis/instances.hpp"
#include "analysis/intervals.hpp"
#include "measure/statistics.hpp"
#include "models/catalog.hpp"
#include "result/inference_record.hpp"

namespace scalemark {
namespace {

/// Of one path of the record, those of several points stand side by side.
void explain(Json& record, const std::string& path, const std::string& reason) {
  Json& known = record["unavailable"][path];
  if (known.is_null())
    known = reason;
  else if (known.get<std::string>().find(reason) == std::string::npos)
    known = known.get<std::string>() + "; " + reason;
}

/// What was measured on one set of slots, over all repeats.
struct Group {
  std::vector<const InstanceLaunch*> launches;  ///< in their order
  Status status = Status::ok;
  std::string reason = {};

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

Group group_of(const std::vector<InstanceLaunch>& launches, const std::vector<std::size_t>& slots,
               std::int64_t repeats) {
  Group group;
  for (const InstanceLaunch& launch : launches) {
    if (!uses(launch, slots)) continue;
    group.launches.push_back(&launch);
    if (launch.status == Status::ok || group.status != Status::ok) continue;
    group.status = launch.status;
    group.reason = launch.reason;
  }
  if (group.status == Status::ok && static_cast<std::int64_t>(group.launches.size()) < repeats) {
    group.status = Status::interrupted;
    group.reason = "stopped before all repeats were measured";
  }
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
      const Slot& slot = plan_.slots[i];
      const bool device = slot.kind != Slot::Kind::cpu;
      list.push_back({{"slot", i},
                      {"kind", to_string(slot.kind)},
                      {"cpus", format_cpu_list(slot.cpus)},
                      {"numa", slot.numa},
                      {"gpu_uuid", device ? Json(slot.uuid) : Json(nullptr)},
                      {"gpu_name", device ? Json(slot.device_name) : Json(nullptr)}});
      for (const char* key : {"gpu_uuid", "gpu_name"})
        if (!device) explain(record_, std::string("slots.") + key, "a slot of CPUs alone");
    }
  }

  void alone() {
    record_["alone"] = Json::array();
    for (std::size_t slot = 0; slot < alone_.size(); ++slot) {
      const Group& group = alone_[slot];
      Json entry{{"slot", slot}, {"status", to_string(group.status)}, {"reason", group.reason}};
      const bool ok = group.status == Status::ok;
      entry["throughput"] = ok ? Json(group.rate(0)) : Json(nullptr);
      entry["latency_seconds"] =
          ok ? quantiles(group.latency(0), "alone.latency_seconds") : Json(nullptr);
      for (const char* key : {"throughput", "latency_seconds"})
        if (!ok) explain(record_, std::string("alone.") + key, group.reason);
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
  Json point(const Group& group, std::size_t instances) {
    Json entry{
        {"instances", instances}, {"status", to_string(group.status)}, {"reason", group.reason}};
    if (group.status == Status::ok) {
      fill(entry, group, instances);
    } else {
      for (const char* key :
           {"cumulative", "speedup", "efficiency", "overlap", "overlaps_enough"}) {
        entry[key] = nullptr;
        explain(record_, std::string("points.") + key, group.reason);
      }
      entry["per_instance"] = Json::array();
    }
    entry["repeats"] = repeats(group, "points.repeats");
    return entry;
  }

  void fill(Json& entry, const Group& group, std::size_t instances) {
    const auto together = group.each(&LaunchFigures::throughput);
    const auto interval = log_interval(together);
    const double rates = mean(group.each(&LaunchFigures::sum_of_rates));
    entry["cumulative"] = {{"mean", mean(together)},
                           {"ci95", interval ? Json{interval->lo, interval->hi} : Json(nullptr)},
                           {"sum_of_rates", rates}};
    if (!interval)
      explain(record_, "points.cumulative.ci95",
              "one repeat has no interval: ask for more with --repeats");
    std::optional<double> all_alone = 0;
    for (std::size_t slot = 0; slot < instances && all_alone; ++slot)
      all_alone = alone_[slot].status == Status::ok
                      ? std::optional(*all_alone + alone_[slot].rate(0))
                      : std::nullopt;
    const bool base = alone_.front().status == Status::ok;
    entry["speedup"] = base ? Json(mean(together) / alone_.front().rate(0)) : Json(nullptr);
    entry["efficiency"] = all_alone ? Json(rates / *all_alone) : Json(nullptr);
    if (!base) explain(record_, "points.speedup", "slot 0 alone was not measured");
    if (!all_alone) explain(record_, "points.efficiency", "not every slot was measured alone");
    const double overlap = std::ranges::min(group.each(&LaunchFigures::overlap));
    entry["overlap"] = overlap;
    entry["overlaps_enough"] = overlap >= kLeastOverlap;
    entry["per_instance"] = Json::array();
    for (std::size_t slot = 0; slot < instances; ++slot)
      entry["per_instance"].push_back(instance(group, slot));
  }

  Json instance(const Group& group, std::size_t slot) {
    const std::string place = "points.per_instance.";
    const Group& alone = alone_[slot];
    const bool known = alone.status == Status::ok;
    const double rate = group.rate(slot);
    Json entry{{"slot", slot}, {"throughput", rate}};
    entry["alone"] = known ? Json(alone.rate(0)) : Json(nullptr);
    entry["ratio"] = known ? Json(rate / alone.rate(0)) : Json(nullptr);
    entry["latency_seconds"] = quantiles(group.latency(slot), place + "latency_seconds");
    entry["alone_latency_seconds"] =
        known ? quantiles(alone.latency(0), place + "alone_latency_seconds") : Json(nullptr);
    for (const char* key : {"alone", "ratio", "alone_latency_seconds"})
      if (!known) explain(record_, place + key, alone.reason);
    return entry;
  }

  Json quantiles(const std::vector<double>& samples, const std::string& place) {
    Json entry = Json::object();
    for (const auto& [key, q] : {std::pair{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}}) {
      const std::size_t least = samples_for_quantile(q);
      const bool enough = samples.size() >= least;
      entry[key] = enough ? Json(quantile(samples, q)) : Json(nullptr);
      if (!enough)
        explain(record_, place + "." + key,
                "fewer than " + std::to_string(least) + " steps or queries (--num_batches)");
    }
    return entry;
  }

  Json repeats(const Group& group, const std::string& place) {
    Json list = Json::array();
    for (const InstanceLaunch* launch : group.launches) {
      const bool ok = launch->status == Status::ok;
      const LaunchFigures figures = launch_figures(launch->instances);
      Json entry{{"repeat", launch->repeat},
                 {"status", to_string(launch->status)},
                 {"reason", launch->reason}};
      for (const auto& [key, value] : {std::pair{"throughput", figures.throughput},
                                       {"sum_of_rates", figures.sum_of_rates},
                                       {"overlap", figures.overlap}}) {
        entry[key] = ok ? Json(value) : Json(nullptr);
        if (!ok) explain(record_, place + "." + key, launch->reason);
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
    const bool ok = launch.status == Status::ok;
    Json entry{{"slot", result.slot}};
    entry["run"] = result.run_id.empty() ? Json(nullptr) : Json(result.run_id);
    entry["path"] = result.run_path.empty() ? Json(nullptr) : Json(result.run_path);
    if (result.run_id.empty()) explain(record_, place + "run", "an instance left no record");
    entry["log"] = result.log_path.empty() ? Json(nullptr) : Json(result.log_path);
    if (result.run_path.empty())
      explain(record_, place + "path", "without a record, or without --output, there is no file");
    if (result.log_path.empty())
      explain(record_, place + "log", "kept of launches that are not ok, with --output");
    entry["throughput"] = ok ? Json(result.throughput) : Json(nullptr);
    entry["units"] = ok ? Json(result.units) : Json(nullptr);
    entry["window_seconds"] =
        ok ? Json{result.window.start - first, result.window.end - first} : Json(nullptr);
    entry["latency_seconds"] =
        ok ? quantiles(result.latency, place + "latency_seconds") : Json(nullptr);
    for (const char* key : {"throughput", "units", "window_seconds", "latency_seconds"})
      if (!ok) explain(record_, place + key, launch.reason);
    return entry;
  }

  Json& record_;
  const InstancesPlan& plan_;
  std::vector<Group> alone_;  ///< by slot
};

}  // namespace

Json make_instances_record(const InstancesPlan& plan, const std::vector<InstanceLaunch>& launches,
                           Status status, const std::string& reason, const SystemInfo& system,
                           const std::map<std::string, std::string>& environment) {
  const RunConfig& config = plan.config.config;
  Json record = envelope("instances", status, reason);
  record["job"] = plan.config.command == Command::infer ? "infer" : "run";
  record["model"] = config.model;
  const auto model = find_model(config.model);
  record["unit"] = model ? std::string(model->unit) : "images/sec";
  record["repeat_unit"] = "launch";
  record["least_overlap"] = kLeastOverlap;
  record["config"] = config_to_json(plan.config);
  for (const auto& [key, value] : plan.own_config.items()) record["config"][key] = value;
  record["config_hash"] = instances_hash(plan);
  record["slots"] = record["alone"] = record["points"] = Json::array();
  record["system"] = system.json;
  record["environment"] = environment;
  record["unavailable"] = system.unavailable;
  Writer writer(record, plan, launches);
  writer.slots();
  writer.alone();
  writer.points(launches);
  return record;
}

}  // namespace scalemark
