// From a measured preflight record to a judged one; and masks of CPUs, judged as if ranks were
// bound to them.
#pragma once

#include <vector>

#include "analysis/preflight/rules.hpp"
#include "platform/topology.hpp"
#include "result/preflight_record.hpp"
#include "result/record_context.hpp"

namespace scalemark {

/// Fills `settings`, `checks` and `verdict`; what warns or fails is told under `warnings`. Without
/// GPUs, what they would be checked for is one skip. Of a record that --pinning made, only rules of
/// the binding are applied.
void apply_preflight_rules(Json& record, const std::vector<PreflightRank>& ranks,
                           const std::vector<PreflightRule>& rules);

/// The judged preflight record of a rank a mask (its CPUs), in order, all on this host, which has
/// the CPUs of `topology`: what --pinning makes of ranks that run. Throws ConfigError where a mask
/// has a CPU that is not there.
Json judged_masks(const RecordContext& context, hwloc_topology_t topology,
                  const std::vector<std::vector<int>>& masks,
                  const std::vector<PreflightRule>& rules);

}  // namespace scalemark
