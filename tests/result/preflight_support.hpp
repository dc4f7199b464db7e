// Hand-made ranks and collectives of preflight.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "result/preflight_record.hpp"
#include "result/support.hpp"

namespace scalemark::test {

inline record::CheckedHost preflight_host(const std::string& name) {
  record::CheckedHost host;
  host.host = name;
  host.memory_available_bytes = std::int64_t{1} << 33;
  host.governor = std::string("performance");
  host.smt = false;
  host.nics = {{"eth0", std::int64_t{10000}}};
  host.fabric = {{"mlx5_0/1", std::string("ACTIVE"), 100.}};
  host.scratch = record::Scratch{{1 << 26, 2e8, 5e8}, "/tmp"};
  return host;
}

/// Two a host, on cores of their own, all alike: 100 GFLOP/s, 10 GB/s, quanta of 1 ms.
inline std::vector<PreflightRank> preflight_ranks(int count) {
  std::vector<PreflightRank> ranks;
  for (int i = 0; i < count; ++i) {
    PreflightRank rank;
    rank.report = make_report(i, {}, {});
    rank.report.noise.error_counters = {{"eth0", 0}};
    rank.report.cpus_of_host = 8;
    const record::GemmRate gemm{1e11, 1.1e11};
    rank.entry.gemm = record::GemmRates{gemm, gemm, gemm, gemm};
    rank.entry.memory_bandwidth = record::MemoryBandwidth{1e10, 1.2e10, 1 << 26, 10};
    rank.entry.noise_quantum = record::NoiseQuantum{1000, 900, 1e-3, 1e-3, 1e-3, 1.1e-3, 1.5};
    rank.settings = {{"NCCL_ALGO", "Ring"}, {"pml", ""}, {"coll_hcoll_enable", "1"}};
    if (i % 2 == 0) rank.host = preflight_host(rank.report.host);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

/// A healthy GPU near NUMA node 0 of two.
inline GpuFindings gpu_findings() {
  GpuFindings found;
  found.health.memory_bytes = 80LL << 30;
  found.health.memory_free_bytes = 79LL << 30;
  found.health.sm_max_mhz = 1980;
  found.health.memory_max_mhz = 2619;
  found.health.load = {1800, 2619, std::vector<std::string>{}, true};
  found.health.ecc_enabled = true;
  found.health.ecc_before = found.health.ecc_after = EccErrors{3, 0};
  found.health.xids = found.health.xids_log = std::vector<int>{};
  found.health.nvlinks_active = 18;
  found.health.nvlinks_inactive = 0;
  found.traits = {true, false};
  found.peermem = true;
  found.numa = 0;
  found.copies = {{0, 5e10, 4e10}, {1, 3e10, 2e10}};
  return found;
}

/// The same with a GPU each near their CPUs, and a host's two GPUs connected.
inline std::vector<PreflightRank> gpu_ranks(int count) {
  auto ranks = preflight_ranks(count);
  for (PreflightRank& rank : ranks) {
    rank.report.gpu = rank.report.rank % 2;
    rank.report.gpu_uuid = "GPU-" + std::to_string(rank.report.rank);
    rank.report.near_cpus_of_gpu = rank.report.affinity.cpus;
    rank.entry.gpu_health = gpu_health(gpu_findings());
    if (rank.host)
      rank.host->gpu_peers = std::vector<PeerLink>{{0, 1, true, 3e11}, {1, 0, false, 2e10}};
  }
  return ranks;
}

/// Of --pinning, where the kernel tells nothing.
inline std::vector<PreflightRank> pinned_ranks(int count) {
  std::vector<PreflightRank> ranks;
  for (int i = 0; i < count; ++i) {
    PreflightRank& rank = ranks.emplace_back();
    rank.report = make_report(i, {}, {});
    rank.report.affinity = {};
    rank.report.affinity_requested = {};
    rank.report.noise = {};
    if (i % 2 > 0) continue;
    rank.host = preflight_host(rank.report.host);
    rank.host->scratch = {};
    rank.host->governor = {};
  }
  return ranks;
}

/// Of hosts "node0", "node1", ...: 1 GB/s and 10 us, of the last one a quarter.
inline std::vector<record::HostPair> preflight_pairs(int hosts) {
  std::vector<record::HostPair> pairs;
  for (int first = 0; first < hosts; ++first)
    for (int second = first + 1; second < hosts; ++second)
      pairs.push_back({{fmt::format("node{}", first), fmt::format("node{}", second)},
                       4 << 20,
                       1e-5,
                       second + 1 == hosts ? 2.5e8 : 1e9});
  return pairs;
}

inline record::CollectiveRow preflight_row(const std::string& collective,
                                           const std::string& carrier, std::int64_t bytes,
                                           double seconds) {
  const double rate = static_cast<double>(bytes) / seconds;
  return {collective, carrier, bytes, seconds, rate, rate, 10, 0, {}};
}

inline record::Collectives preflight_collectives() {
  return {std::string("vader"),
          std::string("ring"),
          {preflight_row("allreduce", "mpi", 1024, 1e-5),
           preflight_row("allreduce", "scalemark", 1024, 2e-5),
           preflight_row("allreduce", "mpi", 1 << 20, 1e-3),
           preflight_row("allreduce", "scalemark", 1 << 20, 1e-3)},
          {{1024, 2.0}, {1 << 20, 1.0}}};
}

inline RecordContext preflight_context() {
  RecordContext context{{}, system_info(), {}};
  context.config.command = Command::preflight;
  return context;
}

inline PreflightFacts preflight_facts(std::size_t ranks) {
  PreflightFacts facts;
  facts.world_size = static_cast<int>(ranks);
  facts.device = "cpu";
  facts.device_name = std::string("cpu");
  facts.allocator = std::string("tcmalloc");
  facts.started_at = "2026-01-31T12:00:00.000Z";
  facts.wall_seconds = 10;
  facts.collectives = preflight_collectives();
  return facts;
}

}  // namespace scalemark::test
