// The run record: everything that one measured run says (design.md section 3,
// docs/schema/run.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "measure/batch_search.hpp"
#include "measure/samples.hpp"
#include "measure/statistics.hpp"
#include "platform/binding.hpp"
#include "platform/energy.hpp"
#include "platform/machine_reading.hpp"
#include "platform/platform.hpp"
#include "result/record_context.hpp"

namespace scalemark {

/// What each rank reports to rank 0 after a run.
struct RankReport {
  int rank = 0;
  std::string host;
  Affinity affinity;
  RequestedBinding affinity_requested;
  int cpus_of_host = 0;               ///< logical ones that are online; 0: unknown
  std::vector<int> near_cpus_of_gpu;  ///< empty: no GPU, or its place is unknown
  std::optional<int> gpu;
  std::string gpu_uuid;
  int threads = 1;
  Samples samples;
  NoiseEvidence noise;
  std::vector<MachineReading> readings;  ///< `at` from the loop's begin; of --window_seconds
  Energy energy;  ///< of its host where it is the host's first rank, and of its GPU
  bool energy_of_host = false;
  double communication_cpu_seconds = 0;  ///< CPU time of the communication thread during the loop
  std::int64_t peak_rss_bytes = 0;
  std::optional<std::int64_t> peak_gpu_bytes;
  std::int64_t gradient_buffer_bytes = 0;
  std::int64_t weight_bytes = 0, optimizer_state_bytes = 0, batch_bytes = 0;
};
nlohmann::json to_json(const RankReport& report);
RankReport rank_report_from_json(const nlohmann::json& json);

/// How gradients of embedding tables travel.
struct EmbeddingFacts {
  struct Table {
    std::string name;
    std::int64_t rows, width;  ///< V x d
    bool tied;                 ///< a projection shares it
  };
  std::string strategy, tied_gradient;
  std::vector<Table> tables;
  std::int64_t reduced_bytes = 0;       ///< fp32 gradients of tables that an allreduce sums
  std::int64_t reduced_wire_bytes = 0;  ///< of the wire bytes of their buckets, their share
};

/// Facts of the run that are the same on all ranks.
struct RunFacts {
  std::string unit;           ///< "images/sec"
  double units_per_step = 0;  ///< of all ranks
  BatchPlan batch{};
  std::optional<BatchSearch> batch_search;  ///< of --batch_size max
  int world_size = 1;
  std::string device;  ///< "cpu" or "cuda"
  std::string device_name;
  std::string communicator;  ///< Communicator::name()
  std::string reducer = "scalemark";
  std::string wire_dtype = "fp32";  ///< what gradients travel as
  std::string transport;            ///< e.g. "vader", "tcp"; empty where unknown
  std::string algorithm;  ///< of the allreduce, e.g. "ring"; what wire_bytes are computed from
  std::string allocator;  ///< "tcmalloc", "glibc"
  bool precision_native = true;
  std::int64_t parameters = 0;
  double flops_per_sample =
      0;  ///< of this run: 3 x forward for training, forward for --forward_only
  std::int64_t bytes_per_step = 0;          ///< payload per rank in the wire dtype, of the buckets
  std::int64_t wire_bytes_per_step = 0;     ///< sent per rank by the stated algorithm, likewise
  std::int64_t messages_per_step = 0;       ///< collectives started per step, likewise
  std::optional<EmbeddingFacts> embedding;  ///< unset: no embedding tables, or no gradients
  std::optional<double> gemm_flops;         ///< measured, all ranks together, FLOP/s
  std::optional<double>
      baseline_throughput;  ///< no-communication throughput of the same ranks, units/s
  std::optional<double> baseline_step_seconds;  ///< its mean step
  std::string started_at;                       ///< RFC 3339, UTC
};

/// Everything that follows from the reports, its outcome too: pure function of its arguments.
/// `reports` is ordered by rank. Formulas: docs/measurements.md. RunError: see outcome_of_run().
Json make_run_record(const RecordContext& context, const RunFacts& facts,
                     const std::vector<RankReport>& reports);

/// A record of a run that ended without samples (failed, timeout): schema-valid, no throughput.
Json make_failed_record(const RecordContext& context, int world_size, const Outcome& outcome);

}  // namespace scalemark
