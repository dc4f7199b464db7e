// Parts of the preflight record: hosts, GPUs and fabric ports.
#pragma once

#include <optional>
#include <vector>

#include "platform/fabric.hpp"
#include "platform/gpu_health.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"

namespace scalemark {

/// What a rank finds out about its GPU.
struct GpuFindings {
  GpuHealth health;
  GpuTraits traits;
  bool peermem = false;
  std::optional<int> numa;  ///< node that the GPU is near
  std::vector<GpuCopy> copies;
};

/// An entry `ranks[].gpu_health`; null for what is unknown.
Json gpu_health_json(const GpuFindings& findings);
/// `hosts[].gpu_peers`.
Json peer_links_json(const std::vector<PeerLink>& links);
/// `hosts[].fabric`.
Json fabric_json(const std::vector<FabricPort>& ports);
/// An entry of `hosts`, of this one, less the counters; `scratch` and `peers`: null where they were
/// not measured.
Json host_json(const SystemInfo& system, const Json& scratch, const Json& peers);

}  // namespace scalemark
