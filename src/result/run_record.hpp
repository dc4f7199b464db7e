// The run record: everything that one measured run says (design.md section 3,
// docs/schema/run.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "measure/batch_search.hpp"
#include "measure/statistics.hpp"
#include "record/rank_report.hpp"
#include "record/run.hpp"
#include "result/record_context.hpp"

namespace scalemark {

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
  bool records_steps = false;  ///< a step is one CUDA graph
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
RunResult make_run(const RecordContext& context, const RunFacts& facts,
                   const std::vector<RankReport>& reports);

/// Makes the record of a run that ended without samples (failed, timeout), which has no throughput.
RunResult make_failed_run(const RecordContext& context, int world_size, const Outcome& outcome);
/// Its record.
Json make_failed_record(const RecordContext& context, int world_size, const Outcome& outcome);

}  // namespace scalemark
