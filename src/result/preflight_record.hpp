// The preflight record: what was measured on the nodes, rank by rank, before rules judge it
// (docs/schema/preflight.schema.json, docs/preflight.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "result/run_record.hpp"

namespace scalemark {

/// What a rank found out, as it travels to rank 0.
struct PreflightRank {
  RankReport report;
  /// {"gemm", "memory_bandwidth", "noise_quantum", "gpu_health"}, the last null without a GPU; all
  /// null: --pinning.
  Json measured = nullptr;
  Json host = nullptr;  ///< of the first rank of each host, else null: an entry of `hosts`
  std::map<std::string, std::string> settings;  ///< of communication; see analysis/settings.hpp
  static void describe(Fields& fields);
};

struct PreflightFacts {
  int world_size = 1;
  std::string device, device_name, allocator, started_at;
  double wall_seconds = 0;
  Json collectives =
      nullptr;  ///< {"transport", "algorithm", "rows", "allreduce_ratio"}; null: none
  std::string no_collectives;  ///< why
  Json pairs = nullptr;        ///< of hosts: [{"hosts", "bytes", "latency_seconds", ...}]
};

/// `ranks` in their order. `checks` is empty and `verdict` null until the rules have judged.
Json make_preflight_record(const RecordContext& context, const PreflightFacts& facts,
                           const std::vector<PreflightRank>& ranks);

/// A record of checks that did not come to an end.
Json make_failed_preflight_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome);

}  // namespace scalemark
