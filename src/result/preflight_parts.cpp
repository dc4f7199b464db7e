// Fills in the hosts and GPUs of the preflight record.
#include "result/preflight_parts.hpp"

#include <algorithm>
#include <utility>

#include "platform/fabric.hpp"
#include "platform/memory_limit.hpp"
#include "record/read.hpp"

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

}  // namespace scalemark
