// Masks of CPUs, judged as if ranks were bound to them: no rank is started.
#pragma once

#include <vector>

#include "analysis/preflight/rules.hpp"
#include "platform/topology.hpp"
#include "result/record_context.hpp"

namespace scalemark {

/// The judged preflight record of a rank a mask (its CPUs), in order, all on this host, which has
/// the CPUs of `topology`: what --pinning makes of ranks that run. Throws ConfigError where a mask
/// has a CPU that is not there.
Json judged_masks(const RecordContext& context, hwloc_topology_t topology,
                  const std::vector<std::vector<int>>& masks,
                  const std::vector<PreflightRule>& rules);

}  // namespace scalemark
