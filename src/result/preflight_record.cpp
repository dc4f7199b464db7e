// Writes the preflight record. Unknown numbers are null with a reason, as in every record.
#include "result/preflight_record.hpp"

#include <algorithm>
#include <utility>

#include "platform/fabric.hpp"
#include "platform/memory_limit.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "result/foreign_load.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

record::EccCounts ecc_counts(const GpuHealth& health) {
  record::EccCounts counts;
  counts.enabled = health.ecc_enabled;
  const auto& [before, after] = std::pair(health.ecc_before, health.ecc_after);
  if (!after) return counts;
  counts.corrected = after->corrected;
  counts.uncorrected = after->uncorrected;
  if (!before) return counts;
  const auto rise = [](std::uint64_t from, std::uint64_t to) { return to - std::min(from, to); };
  counts.corrected_new = rise(before->corrected, after->corrected);
  counts.uncorrected_new = rise(before->uncorrected, after->uncorrected);
  return counts;
}

/// Near where the firmware says so; of a host with one node that node is.
Known<bool> is_near(const GpuFindings& findings, int node) {
  if (findings.numa) return node == *findings.numa;
  return findings.copies.size() == 1 ? Known(true) : Known<bool>();
}

PreflightResult start_preflight(const RecordContext& context, int world_size,
                                const Outcome& outcome) {
  PreflightResult result;
  set_surroundings(result, "preflight", context, outcome);
  result.world_size = world_size;
  return result;
}

record::CheckedRank checked_rank(const PreflightRank& from, const record::RankPlacement& placement,
                                 const std::vector<ForeignLoad>& loads) {
  record::CheckedRank rank = from.entry;
  static_cast<record::RankPlacement&>(rank) = placement;
  rank.cpus_of_host = from.report.cpus_of_host;
  const NoiseEvidence& noise = from.report.noise;
  rank.noise = {noise.steal, noise.throttled_seconds, noise.load1, noise.context_switches, {}};
  for (const ForeignLoad& load : loads)
    if (load.host == from.report.host) rank.noise.foreign_cpus = load.cpus;
  return rank;
}

/// New errors by link: of interfaces those of the noise, of fabric ports the sum of what rose.
std::map<std::string, std::uint64_t> error_counters_of(const record::CheckedHost& host,
                                                       const NoiseEvidence& noise) {
  std::map<std::string, std::uint64_t> errors = noise.error_counters;
  for (const record::FabricPort& port : host.fabric) {
    std::uint64_t& sum = errors[port.name] = 0;
    for (const auto& [counter, rose] : host.risen_counters)
      if (counter.starts_with(port.name + ".")) sum += rose;
  }
  return errors;
}

}  // namespace

record::GpuHealth gpu_health(const GpuFindings& findings) {
  const GpuHealth& health = findings.health;
  record::GpuHealth told;
  told.memory_bytes = health.memory_bytes;
  told.memory_free_bytes = health.memory_free_bytes;
  told.sm_mhz = health.load.sm_mhz;
  told.sm_max_mhz = health.sm_max_mhz;
  told.memory_mhz = health.load.memory_mhz;
  told.memory_max_mhz = health.memory_max_mhz;
  told.slowdowns = health.load.slowdowns;
  told.power_capped = health.load.power_capped;
  told.ecc = ecc_counts(health);
  told.xids = {health.xids, health.xids_log};
  told.nvlinks = {health.nvlinks_active, health.nvlinks_inactive};
  told.gpudirect = {findings.peermem, findings.traits.dmabuf};
  told.ats = findings.traits.ats;
  told.numa = findings.numa;
  for (const GpuCopy& copy : findings.copies)
    told.copies.push_back({copy, is_near(findings, copy.numa)});
  return told;
}

record::CheckedHost checked_host(const SystemInfo& info) {
  const auto system = part_from<record::System>(info.json);
  record::CheckedHost host;
  host.host = host_name();
  host.memory_available_bytes = memory_left(1);
  host.governor = system.governor;
  host.smt = system.smt;
  for (const record::Nic& nic : system.nics) host.nics.push_back({nic.name, nic.speed_mbps});
  for (const FabricPort& port : read_fabric_ports())
    host.fabric.push_back({port.name, port.state, port.gigabits_per_second});
  return host;
}

void PreflightRank::describe(Fields& fields) {
  fields.add("report", &PreflightRank::report);
  fields.add("entry", &PreflightRank::entry);
  fields.add("host", &PreflightRank::host);
  fields.add("settings", &PreflightRank::settings);
}

PreflightResult make_preflight_record(const RecordContext& context, const PreflightFacts& facts,
                                      const std::vector<PreflightRank>& ranks) {
  PreflightResult result = start_preflight(context, facts.world_size, {});
  result.device = known_text(facts.device);
  result.device_name = facts.device_name;
  result.allocator = facts.allocator;
  set_start(result, facts.started_at);
  result.wall_seconds = facts.wall_seconds;
  result.collectives = facts.collectives;
  result.pairs = {facts.pairs, "all ranks are on one host, or --pinning measures nothing"};
  const Unknown no_gpu{"the ranks use no GPU"};
  std::vector<RankReport> reports;
  for (const PreflightRank& rank : ranks) reports.push_back(rank.report);
  const auto placements = rank_placements(reports);
  const auto loads = foreign_loads(reports);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto& rank = result.ranks.emplace_back(checked_rank(ranks[i], placements[i], loads));
    if (facts.device != "cuda" && !rank.gpu_health) rank.gpu_health = no_gpu;
    if (!ranks[i].host) continue;
    auto& host = result.hosts.emplace_back(*ranks[i].host);
    host.error_counters = error_counters_of(host, ranks[i].report.noise);
    if (facts.device != "cuda" && !host.gpu_peers) host.gpu_peers = no_gpu;
  }
  return result;
}

Json make_failed_preflight_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome) {
  const PreflightResult result = start_preflight(context, world_size, outcome);
  return record_json(result, "the checks did not come to an end: " + result.reason);
}

}  // namespace scalemark
