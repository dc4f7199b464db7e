// Hand-made ranks and collectives of preflight.
#pragma once

#include <string>
#include <vector>

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
                       {"p99_seconds", 1.1e-3},
                       {"max_over_min", 1.5}}}};
    if (i % 2 == 0)
      rank.host = {{"host", rank.report.host},
                   {"memory_available_bytes", 1LL << 33},
                   {"governor", "performance"},
                   {"smt", false},
                   {"nics", Json::array({{{"name", "eth0"}, {"speed_mbps", 10000}}})},
                   {"scratch",
                    {{"folder", "/tmp"},
                     {"bytes", 1 << 26},
                     {"write_bytes_per_second", 2e8},
                     {"read_bytes_per_second", 5e8}}}};
    ranks.push_back(std::move(rank));
  }
  return ranks;
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
