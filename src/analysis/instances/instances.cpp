// See instances.hpp.
#include "analysis/instances/instances.hpp"

#include <algorithm>
#include <numeric>

#include "config/text.hpp"

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

}  // namespace scalemark
