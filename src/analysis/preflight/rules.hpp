// Rules of preflight, what they say of a measurement, and the judged record: of ranks that ran, and
// of masks of CPUs as if ranks were bound to them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/preflight/values.hpp"
#include "platform/topology.hpp"
#include "record/describe.hpp"
#include "result/preflight_record.hpp"
#include "result/record_context.hpp"

namespace scalemark {

struct PreflightRule {
  std::string check;  ///< a name, or its beginning and "*": "gemm.*"
  std::string statistic;
  Bound bound = Bound::min;
  Json limit;
  CheckStatus level = CheckStatus::fail;  ///< what a value beyond the limit is: warn or fail
};

/// A rules file, {"rules": [{"check", "statistic", "min" | "max" | "relative_to_median" | "equals",
/// "level": "warn" | "fail"}, ...]}, perhaps with "description" and "$schema". Throws ConfigError
/// with `name` and the place.
std::vector<PreflightRule> parse_preflight_rules(std::string_view text, std::string_view name);

/// The keys of such a file.
const Fields& rules_file_fields();

/// Those that need no baseline, as a rules file.
std::string_view default_preflight_rules();

/// Reads the rules of the file that --rules names; of nullopt those that need no baseline.
std::vector<PreflightRule> read_preflight_rules(const std::optional<std::string>& path);

/// The default rules and limits from these values, which lie `margin` (a fraction) from the worst
/// rank's number: fail for GEMM, memory, the noise quantum and the bus bandwidth of collectives of
/// 64 KiB and more; warn for the seconds of smaller ones and for the scratch file.
Json make_preflight_rules(const std::vector<PreflightValue>& values, double margin,
                          const std::string& description);

/// Returns, for every rule and every check that it names, one result for each value beyond the
/// limit, or one with the value nearest to it, or a skip where nothing is known.
std::vector<record::Check> evaluate(const std::vector<PreflightRule>& rules,
                                    const std::vector<PreflightValue>& values);

/// Returns the most severe status of all; skips do not count.
CheckStatus verdict_of(const std::vector<record::Check>& results);

/// Fills `settings`, `checks` and `verdict`; what warns or fails is told under `warnings`. Without
/// GPUs, what they would be checked for is one skip. Of a record that --pinning made, only rules of
/// the binding are applied.
void apply_preflight_rules(PreflightResult& record, const std::vector<PreflightRank>& ranks,
                           const std::vector<PreflightRule>& rules);

/// Returns the record with what the diagnosis finds.
Json judged_json(const PreflightResult& record);

/// The judged preflight record of a rank a mask (its CPUs), in order, all on this host, which has
/// the CPUs of `topology`: what --pinning makes of ranks that run. Throws ConfigError where a mask
/// has a CPU that is not there.
PreflightResult judged_masks(const RecordContext& context, hwloc_topology_t topology,
                             const std::vector<std::vector<int>>& masks,
                             const std::vector<PreflightRule>& rules);

}  // namespace scalemark
