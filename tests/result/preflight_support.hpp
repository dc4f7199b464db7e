// Hand-made ranks and collectives of preflight.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "result/preflight_parts.hpp"
#include "result/preflight_record.hpp"
#include "result/support.hpp"

namespace scalemark::test {

/// Two a host, on cores of their own, all alike: 100 GFLOP/s, 10 GB/s, quanta of 1 ms.
inline std::vector<PreflightRank> preflight_ranks(int count) {
  std::vector<PreflightRank> ranks;
  for (int i = 0; i < count; ++i) {
    PreflightRank rank;
    rank.report = make_report(i, {}, {});
    rank.report.noise.error_counters = {{"eth0", 0}};
    rank.report.cpus_of_host = 8;
    const Json gemm = {{"flops", 1e11}, {"median_flops", 1.1e11}};
    rank.measured = {{"gemm", {{"fp64", gemm}, {"fp32", gemm}, {"bf16", gemm}, {"fp16", gemm}}},
                     {"memory_bandwidth",
                      {{"bytes_per_second", 1e10},
                       {"best_bytes_per_second", 1.2e10},
                       {"array_bytes", 1 << 26},
                       {"passes", 10}}},
                     {"noise_quantum",
                      {{"steps", 1000},
                       {"samples", 900},
                       {"mean_seconds", 1e-3},
                       {"median_seconds", 1e-3},
                       {"best_mean_seconds", 1e-3},
                       {"p99_seconds", 1.1e-3},
                       {"max_over_min", 1.5}}},
                     {"gpu_health", nullptr}};
    rank.settings = {{"NCCL_ALGO", "Ring"}, {"pml", ""}, {"coll_hcoll_enable", "1"}};
    if (i % 2 == 0)
      rank.host = {
          {"host", rank.report.host},
          {"memory_available_bytes", 1LL << 33},
          {"governor", "performance"},
          {"smt", false},
          {"nics", Json::array({{{"name", "eth0"}, {"speed_mbps", 10000}}})},
          {"fabric",
           Json::array(
               {{{"name", "mlx5_0/1"}, {"state", "ACTIVE"}, {"gigabits_per_second", 100.0}}})},
          {"risen_counters", Json::object()},
          {"gpu_peers", nullptr},
          {"scratch",
           {{"folder", "/tmp"},
            {"bytes", 1 << 26},
            {"write_bytes_per_second", 2e8},
            {"read_bytes_per_second", 5e8}}}};
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
    rank.measured["gpu_health"] = gpu_health_json(gpu_findings());
    if (!rank.host.is_null())
      rank.host["gpu_peers"] = peer_links_json({{0, 1, true, 3e11}, {1, 0, false, 2e10}});
  }
  return ranks;
}

/// Of hosts "node0", "node1", ...: 1 GB/s and 10 us, of the last one a quarter.
inline Json preflight_pairs(int hosts) {
  Json pairs = Json::array();
  for (int first = 0; first < hosts; ++first)
    for (int second = first + 1; second < hosts; ++second)
      pairs.push_back({{"hosts", {fmt::format("node{}", first), fmt::format("node{}", second)}},
                       {"bytes", 4 << 20},
                       {"latency_seconds", 1e-5},
                       {"bytes_per_second", second + 1 == hosts ? 2.5e8 : 1e9}});
  return pairs;
}

inline Json preflight_row(const std::string& collective, const std::string& carrier,
                          std::int64_t bytes, double seconds) {
  const double rate = static_cast<double>(bytes) / seconds;
  return {{"collective", collective}, {"carrier", carrier},  {"bytes", bytes},
          {"seconds", seconds},       {"algbw", rate},       {"busbw", rate},
          {"repetitions", 10},        {"wrong_elements", 0}, {"first_wrong", nullptr}};
}

inline Json preflight_collectives() {
  return {{"transport", "vader"},
          {"algorithm", "ring"},
          {"rows", Json::array({preflight_row("allreduce", "mpi", 1024, 1e-5),
                                preflight_row("allreduce", "scalemark", 1024, 2e-5),
                                preflight_row("allreduce", "mpi", 1 << 20, 1e-3),
                                preflight_row("allreduce", "scalemark", 1 << 20, 1e-3)})},
          {"allreduce_ratio", Json::array({{{"bytes", 1024}, {"scalemark_over_mpi", 2.0}},
                                           {{"bytes", 1 << 20}, {"scalemark_over_mpi", 1.0}}})}};
}

}  // namespace scalemark::test
