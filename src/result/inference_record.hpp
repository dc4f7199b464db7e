// The inference record: throughput and latency of forward passes
// (docs/schema/inference.schema.json). Ranks are independent replicas: nothing is the maximum over
// ranks of a step. Formulas: docs/measurements.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/server.hpp"
#include "record/inference.hpp"
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
  StopReason stop_reason = StopReason::num_batches;  ///< the most severe of any rank
};
InferenceMetrics inference_metrics(const std::vector<RankReport>& reports, double units);

/// Samples below which a quantile is not stated: fewer would put it beyond all but the `beyond`
/// largest. beyond / (1 - q): for 1, 10 for p90 and 1000 for p99.9.
std::size_t samples_for_quantile(double q, double beyond = 1);

/// What a record says of --precision int8.
struct QuantizationFacts {
  std::int64_t layers = 0;    ///< whose weights are in int8
  double relative_error = 0;  ///< of the logits, against fp32
};

/// Facts of an inference run that are the same on all ranks; units_per_step is of one query of all
/// ranks.
struct InferenceFacts : RunFacts {
  std::string fused;  ///< "on", "folded" or "off": what --kernels came to
  std::optional<QuantizationFacts> quantization;
  std::optional<RateSearch> rate_search;  ///< of --mode server without --arrival_rate
};

/// What --mode server offered, and how latencies come about.
Known<record::Server> server_of(const ResolvedConfig& config, const InferenceFacts& facts,
                                const std::vector<RankReport>& reports);
/// Why a trial that ended so has no quantiles; empty where it has.
std::string server_end_reason(ServerEnd end);

/// Which quantiles are stated: of `beyond` / (1 - q) values and more, unless `never` says why none.
struct QuantileRule {
  double beyond = 1;
  std::string flag = "--num_batches";  ///< that asks for more
  std::string never = {};
};
/// Returns the rule for the quantiles of a server: ten queries lie beyond each, since beyond fewer
/// a quantile is that of a few bursts.
QuantileRule server_quantiles(ServerEnd end);
/// Returns the quantiles of `seconds`, which are not empty.
record::Quantiles quantiles_of(const std::vector<double>& seconds, const QuantileRule& rule);

/// `reports` is ordered by rank. RunError: see outcome_of_inference().
InferenceResult make_inference(const RecordContext& context, const InferenceFacts& facts,
                               const std::vector<RankReport>& reports);

/// A record of a run that ended without samples (failed, timeout): schema-valid, no throughput.
Json make_failed_inference_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome);

}  // namespace scalemark
