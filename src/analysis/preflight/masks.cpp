// See masks.hpp.
#include "analysis/preflight/masks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/preflight/apply_rules.hpp"
#include "analysis/settings.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "result/preflight_parts.hpp"

namespace scalemark {
namespace {

void refuse_absent_cpus(const std::vector<std::vector<int>>& masks,
                        const std::vector<int>& machine) {
  for (std::size_t rank = 0; rank < masks.size(); ++rank)
    for (const int cpu : masks[rank])
      if (!std::ranges::binary_search(machine, cpu))
        refuse_at("--cpu_masks",
                  fmt::format("the mask of rank {} has CPU {}, but the machine has {} CPUs: {}",
                              rank, cpu, machine.size(), format_cpu_list(machine)));
}

std::vector<PreflightRank> ranks_of_masks(const RecordContext& context, hwloc_topology_t topology,
                                          const std::vector<std::vector<int>>& masks) {
  const std::vector<int> machine = cpus_of_machine(topology);
  refuse_absent_cpus(masks, machine);
  std::vector<PreflightRank> ranks(masks.size());
  for (std::size_t i = 0; i < masks.size(); ++i) {
    RankReport& report = ranks[i].report;
    report.rank = static_cast<int>(i);
    report.host = host_name();
    report.affinity = affinity_of(topology, masks[i]);
    report.cpus_of_host = static_cast<int>(machine.size());
    report.threads = report.affinity.usable;
    ranks[i].settings = communication_settings(context.environment);
  }
  ranks.front().host = host_json(context.system, nullptr, nullptr);
  ranks.front().host["risen_counters"] = Json::object();
  return ranks;
}

/// What a rank that runs would tell.
void explain_unstarted(Json& record) {
  record["device_name"] = record["allocator"] = nullptr;
  for (const char* path : {"device_name", "allocator", "ranks.affinity_requested",
                           "ranks.binding.as_asked", "settings.hcoll_enabled"})
    record["unavailable"][path] = "--cpu_masks starts no rank";
}

}  // namespace

Json judged_masks(const RecordContext& context, hwloc_topology_t topology,
                  const std::vector<std::vector<int>>& masks,
                  const std::vector<PreflightRule>& rules) {
  const double start = steady_seconds();
  PreflightFacts facts;
  facts.world_size = static_cast<int>(masks.size());
  facts.device = "cpu";
  facts.started_at = utc_timestamp();
  facts.no_collectives = "--pinning measures nothing";
  const auto ranks = ranks_of_masks(context, topology, masks);
  facts.wall_seconds = steady_seconds() - start;
  Json record = make_preflight_record(context, facts, ranks);
  apply_preflight_rules(record, ranks, rules);
  explain_unstarted(record);
  return record;
}

}  // namespace scalemark
