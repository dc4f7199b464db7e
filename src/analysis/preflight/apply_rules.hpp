// From a measured preflight record to a judged one.
#pragma once

#include <vector>

#include "analysis/preflight/rules.hpp"
#include "result/preflight_record.hpp"

namespace scalemark {

/// Fills `settings`, `checks` and `verdict`; what warns or fails is told under `warnings`. Without
/// GPUs, what they would be checked for is one skip. Of a record that --pinning made, only rules of
/// the binding are applied.
void apply_preflight_rules(Json& record, const std::vector<PreflightRank>& ranks,
                           const std::vector<PreflightRule>& rules);

}  // namespace scalemark
