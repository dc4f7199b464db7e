// The inference record: throughput and latency of forward passes
// (docs/schema/inference.schema.json). Ranks are independent replicas: nothing is the maximum over
// ranks of a step. Formulas: docs/measurements.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result/run_record.hpp"

namespace scalemark {

/// What the record derives from the ranks' samples. A query is one forward pass; `units` of one
/// query are the same on all ranks. With no queries everything is empty.
struct InferenceMetrics {
  std::vector<double> latency;              ///< of every query, one rank after the other, seconds
  std::vector<std::size_t> queries;         ///< [ranks]
  std::vector<double> rank_latency;         ///< [ranks]: mean
  double wall_seconds = 0;                  ///< barrier to the end of the slowest rank
  double mean = 0, median = 0, jitter = 0;  ///< units per second of all ranks
  std::optional<Interval> ci95;             ///< of `mean`, this launch only
  StopReason stop_reason = StopReason::num_batches;  ///< the gravest of any rank
};
InferenceMetrics inference_metrics(const std::vector<RankReport>& reports, double units);

/// Samples below which a quantile is not stated: fewer would put it beyond all but the largest.
/// 1 / (1 - q): 10 for p90, 1000 for p99.9.
std::size_t samples_for_quantile(double q);

/// Facts of an inference run that are the same on all ranks; units_per_step is of one query of all
/// ranks.
struct InferenceFacts : RunFacts {
  std::string fused;  ///< "on", "folded" or "off": what --fused came to
};

/// `reports` is ordered by rank. RunError: see outcome_of_inference().
Json make_inference_record(const RecordContext& context, const InferenceFacts& facts,
                           const std::vector<RankReport>& reports);

/// A record of a run that ended without samples (failed, timeout): schema-valid, no throughput.
Json make_failed_inference_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome);

}  // namespace scalemark
