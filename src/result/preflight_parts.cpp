// See preflight_parts.hpp.
#include "result/preflight_parts.hpp"

#include <algorithm>

#include "json.hpp"
#include "platform/memory_limit.hpp"

namespace scalemark {
namespace {

Json ecc_json(const GpuHealth& health) {
  const auto count = [&](std::uint64_t EccErrors::*kind, bool since_begin) -> Json {
    if (!health.ecc_after || (since_begin && !health.ecc_before)) return nullptr;
    const std::uint64_t now = (*health.ecc_after).*kind;
    return since_begin ? now - std::min(now, (*health.ecc_before).*kind) : now;
  };
  return {{"enabled", or_null(health.ecc_enabled)},
          {"corrected", count(&EccErrors::corrected, false)},
          {"uncorrected", count(&EccErrors::uncorrected, false)},
          {"corrected_new", count(&EccErrors::corrected, true)},
          {"uncorrected_new", count(&EccErrors::uncorrected, true)}};
}

/// Near where the firmware says so; of a host with one node that node is.
Json is_near(const GpuFindings& findings, int node) {
  if (findings.numa) return node == *findings.numa;
  return findings.copies.size() == 1 ? Json(true) : Json(nullptr);
}

}  // namespace

Json gpu_health_json(const GpuFindings& findings) {
  const GpuHealth& health = findings.health;
  Json copies = Json::array();
  for (const GpuCopy& copy : findings.copies)
    copies.push_back({{"numa", copy.numa},
                      {"near", is_near(findings, copy.numa)},
                      {"to_device_bytes_per_second", copy.to_device},
                      {"from_device_bytes_per_second", copy.from_device}});
  return {
      {"memory_bytes", or_null(health.memory_bytes)},
      {"memory_free_bytes", or_null(health.memory_free_bytes)},
      {"sm_mhz", or_null(health.load.sm_mhz)},
      {"sm_max_mhz", or_null(health.sm_max_mhz)},
      {"memory_mhz", or_null(health.load.memory_mhz)},
      {"memory_max_mhz", or_null(health.memory_max_mhz)},
      {"slowdowns", or_null(health.load.slowdowns)},
      {"power_capped", or_null(health.load.power_capped)},
      {"ecc", ecc_json(health)},
      {"xids", {{"events", or_null(health.xids)}, {"kernel_log", or_null(health.xids_log)}}},
      {"nvlinks",
       {{"active", or_null(health.nvlinks_active)},
        {"inactive", or_null(health.nvlinks_inactive)}}},
      {"gpudirect", {{"peermem", findings.peermem}, {"dmabuf", or_null(findings.traits.dmabuf)}}},
      {"ats", or_null(findings.traits.ats)},
      {"numa", or_null(findings.numa)},
      {"copies", copies}};
}

Json peer_links_json(const std::vector<PeerLink>& links) {
  Json list = Json::array();
  for (const PeerLink& link : links)
    list.push_back({{"from", link.from},
                    {"to", link.to},
                    {"can_access", link.can_access},
                    {"bytes_per_second", link.bytes_per_second}});
  return list;
}

Json fabric_json(const std::vector<FabricPort>& ports) {
  Json list = Json::array();
  for (const FabricPort& port : ports)
    list.push_back({{"name", port.name},
                    {"state", or_null(port.state)},
                    {"gigabits_per_second", or_null(port.gigabits_per_second)}});
  return list;
}

Json host_json(const SystemInfo& system, const Json& scratch, const Json& peers) {
  Json nics = Json::array();
  for (const Json& nic : system.json.at("nics"))
    nics.push_back({{"name", nic.at("name")}, {"speed_mbps", nic.at("speed_mbps")}});
  return {{"host", host_name()},
          {"memory_available_bytes", or_null(memory_left(1))},
          {"governor", system.json.at("governor")},
          {"smt", system.json.at("smt")},
          {"nics", nics},
          {"fabric", fabric_json(read_fabric_ports())},
          {"scratch", scratch},
          {"gpu_peers", peers}};
}

}  // namespace scalemark
