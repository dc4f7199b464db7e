// Parts of the preflight record: hosts and GPUs.
#pragma once

#include <optional>
#include <vector>

#include "platform/gpu_health.hpp"
#include "platform/platform.hpp"
#include "record/preflight.hpp"

namespace scalemark {

/// What a rank finds out about its GPU.
struct GpuFindings {
  GpuHealth health;
  GpuTraits traits;
  bool peermem = false;
  std::optional<int> numa;  ///< node that the GPU is near
  std::vector<GpuCopy> copies;
};

/// An entry `ranks[].gpu_health`.
record::GpuHealth gpu_health(const GpuFindings& findings);
/// An entry of `hosts`, of this one, less its scratch file, the links of its GPUs and its counters.
record::CheckedHost checked_host(const SystemInfo& system);

}  // namespace scalemark
