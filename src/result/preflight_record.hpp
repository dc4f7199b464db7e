// The preflight record: what was measured on the nodes, rank by rank, before rules judge it
// (docs/schema/preflight.schema.json, docs/preflight.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "platform/gpu_health.hpp"
#include "platform/platform.hpp"
#include "record/preflight.hpp"
#include "record/rank_report.hpp"
#include "result/record_context.hpp"

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

/// What a rank found out, as it travels to rank 0.
struct PreflightRank {
  RankReport report;
  record::CheckedRank entry;  ///< of `ranks`, less what the report tells
  /// The entry of `hosts` of the first rank of each host, less `error_counters`.
  std::optional<record::CheckedHost> host;
  std::map<std::string, std::string> settings;  ///< of communication; see analysis/settings.hpp
  static void describe(Fields& fields);
};

struct PreflightFacts {
  int world_size = 1;
  std::string device, started_at;
  Known<std::string> device_name, allocator;
  double wall_seconds = 0;
  Known<record::Collectives> collectives;
  std::optional<std::vector<record::HostPair>> pairs;
};

/// `ranks` in their order. Without checks, settings and verdict, until the rules have judged.
PreflightResult make_preflight_record(const RecordContext& context, const PreflightFacts& facts,
                                      const std::vector<PreflightRank>& ranks);

/// A record of checks that did not come to an end.
Json make_failed_preflight_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome);

}  // namespace scalemark
