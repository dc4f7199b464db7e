// A temporary folder, and hand-made reports for the record tests.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "platform/tree.hpp"
#include "record/write.hpp"
#include "result/run_record.hpp"

namespace scalemark::test {

inline std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline RankReport make_report(int rank, std::vector<double> steps, std::vector<double> waits) {
  RankReport report;
  report.rank = rank;
  report.host = "node" + std::to_string(rank / 2);
  report.affinity.cpus = {2 * rank, 2 * rank + 1};
  report.affinity.numa = {0};
  report.affinity_requested = {"core", std::nullopt};
  report.cpus_of_host = 8;
  report.threads = 2;
  report.samples.step_seconds = std::move(steps);
  report.samples.wait_seconds = std::move(waits);
  for (double step : report.samples.step_seconds) report.samples.wall_seconds += step;
  report.samples.loss.assign(report.samples.step_seconds.size(), 7.0);
  report.noise.steal = 0.01 * (rank + 1);
  report.noise.busy_cpu_seconds = 8;
  report.noise.own_cpu_seconds = 8;
  report.noise.seconds = 10;
  report.noise.throttled_seconds = 0;
  report.noise.load1 = 1.5;
  report.noise.context_switches = 3;
  report.noise.nic_bytes = 800;
  report.noise.error_counters = {{"eth0", 2}};
  report.communication_cpu_seconds = 0.25;
  report.peak_rss_bytes = 1000 + rank;
  report.gradient_buffer_bytes = 4096;
  return report;
}

inline RunFacts make_facts(int world_size) {
  RunFacts facts;
  facts.unit = "images/sec";
  facts.units_per_step = 16.0 * world_size;
  facts.batch = {16, 16LL * world_size};
  facts.world_size = world_size;
  facts.device = "cpu";
  facts.device_name = "cpu";
  facts.communicator = world_size > 1 ? "mpi" : "none";
  facts.transport = "vader";
  facts.algorithm = "ring";
  facts.allocator = "tcmalloc";
  facts.parameters = 1000;
  facts.flops_per_sample = 1e9;
  facts.bytes_per_step = world_size > 1 ? 4000 : 0;
  facts.wire_bytes_per_step = facts.bytes_per_step;
  facts.messages_per_step = world_size > 1 ? 1 : 0;
  facts.gemm_flops = 200e9;
  facts.started_at = "2026-01-31T12:00:00.000Z";
  return facts;
}

/// The record of make_run().
inline Json make_run_record(const RecordContext& context, const RunFacts& facts,
                            const std::vector<RankReport>& reports) {
  return measured_json(make_run(context, facts, reports));
}

inline LoadedConfig make_config() { return {}; }

/// Of this machine; no variables.
inline RecordContext make_context(LoadedConfig config = {}) {
  return {std::move(config), system_info(), {}};
}

}  // namespace scalemark::test
