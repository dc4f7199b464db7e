// The inference record, put together from what the ranks report.
#include "result/inference_record.hpp"

#include <algorithm>
#include <cmath>

#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"
#include "record/write.hpp"
#include "result/run_metrics.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

InferenceResult start_inference(const RecordContext& context, int world_size,
                                const Outcome& outcome) {
  InferenceResult result;
  set_context(result, "inference", context, outcome);
  const ResolvedConfig& keys = context.config.config;
  result.model = keys.model;
  result.world_size = world_size;
  result.precision = keys.precision;
  result.kernels = *keys.kernels;
  result.mode = keys.mode;
  if (!keys.largest_batch || keys.batch_size) {  // else nobody knows yet
    result.config_hash = config_hash(keys, world_size, Command::infer);
    result.batch_size_per_rank = plan_batch(keys, world_size).batch_size_per_rank;
  }
  if (find_model(keys.model)) result.unit = unit_of(keys);
  return result;
}

/// Units per second of all ranks while each of them asks query i.
std::vector<double> rates(const std::vector<RankReport>& reports, std::size_t queries,
                          double units) {
  std::vector<double> sums(queries, 0.);
  for (const RankReport& report : reports)
    for (std::size_t i = 0; i < queries; ++i) sums[i] += units / report.samples.step_seconds[i];
  return sums;
}

/// Mean over ranks of the latency of query i.
std::vector<double> mean_latencies(const std::vector<RankReport>& reports, std::size_t queries) {
  std::vector<double> means(queries, 0.);
  for (const RankReport& report : reports)
    for (std::size_t i = 0; i < queries; ++i)
      means[i] += report.samples.step_seconds[i] / static_cast<double>(reports.size());
  return means;
}

std::optional<Rates> rates_of(const InferenceFacts& facts, const InferenceMetrics& metrics) {
  if (!(metrics.mean > 0)) return std::nullopt;
  const double units = facts.units_per_step / facts.world_size;
  const auto [fastest, slowest] = std::ranges::minmax(metrics.rank_latency);
  return Rates{metrics.mean,    metrics.median,  metrics.jitter,
               units / slowest, units / fastest, metrics.ci95};
}

bool is_server(const std::vector<RankReport>& reports) {
  return !reports.empty() && reports.front().samples.server;
}

Known<record::Latency> latency_of(const std::vector<RankReport>& reports,
                                  const InferenceMetrics& metrics) {
  if (metrics.latency.empty()) return Unknown{"no query was answered"};
  QuantileRule rule;
  if (is_server(reports)) {
    rule = server_quantiles(ServerEnd::all_served);
    for (const RankReport& report : reports)
      if (report.samples.server->ended_by != ServerEnd::all_served)
        rule = server_quantiles(report.samples.server->ended_by);
  }
  return record::Latency{quantiles_of(metrics.latency, rule), metrics.latency};
}

/// What a rank answers is what it is offered: no rate of its own follows from its latencies.
void drop_own_rates(InferenceResult& result) {
  if (!result.throughput) return;
  const Unknown why{"queries arrive at the rate that is offered (--mode server)"};
  record::Throughput& throughput = *result.throughput;
  throughput.median = throughput.jitter = why;
  throughput.per_rank_min = throughput.per_rank_max = why;
  throughput.ci95 = why;
}

/// Mean seconds that a rank computes for a query: of a server without the queue, whose length is
/// that of its arrivals.
std::vector<double> rank_service(const std::vector<RankReport>& reports,
                                 const InferenceMetrics& metrics) {
  if (!is_server(reports)) return metrics.rank_latency;
  std::vector<double> service;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto& queue = reports[i].samples.server->queue_seconds;
    service.push_back(queue.empty() ? 0 : metrics.rank_latency[i] - mean(queue));
  }
  return service;
}

std::vector<record::InferenceRank> inference_ranks(const InferenceFacts& facts,
                                                   const std::vector<RankReport>& reports,
                                                   const InferenceMetrics& metrics) {
  const auto slow = stragglers(rank_service(reports, metrics));
  const bool comparable = std::ranges::all_of(metrics.queries, [](auto n) { return n > 0; });
  const double units = facts.units_per_step / facts.world_size;
  const auto placements = rank_placements(reports);
  std::vector<record::InferenceRank> ranks;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    record::InferenceRank& rank = ranks.emplace_back();
    static_cast<record::RankPlacement&>(rank) = placements[i];
    rank.queries = static_cast<std::int64_t>(metrics.queries[i]);
    if (comparable) rank.straggler = static_cast<bool>(slow[i]);
    if (metrics.queries[i] == 0) continue;
    rank.latency_seconds_mean = metrics.rank_latency[i];
    rank.throughput = reports[i].samples.server ? units * static_cast<double>(metrics.queries[i]) /
                                                      reports[i].samples.wall_seconds
                                                : units / metrics.rank_latency[i];
  }
  return ranks;
}

Known<record::Quantization> quantization_of(const std::optional<QuantizationFacts>& made) {
  if (!made) return Unknown{"--precision int8 was not asked for"};
  return record::Quantization{made->layers, "symmetric, per output channel",
                              "per tensor, ranges of one fp32 pass",
                              "per tensor, range of each input", made->relative_error};
}

/// Mean time of a step, as if all ranks took the queries in step.
double mean_step_of(const InferenceFacts& facts, const InferenceMetrics& metrics) {
  const auto answered = static_cast<double>(metrics.latency.size());
  return answered > 0 ? metrics.wall_seconds * facts.world_size / answered : 0;
}

}  // namespace

std::size_t samples_for_quantile(double q, double beyond) {
  return static_cast<std::size_t>(std::lround(beyond / (1 - q)));
}

QuantileRule server_quantiles(ServerEnd end) {
  return {10, "--min_query_count", server_end_reason(end)};
}

record::Quantiles quantiles_of(const std::vector<double>& seconds, const QuantileRule& rule) {
  const auto at = [&](double q) -> Known<double> {
    const std::size_t least = samples_for_quantile(q, rule.beyond);
    if (!rule.never.empty()) return Unknown{rule.never};
    if (seconds.size() < least)
      return Unknown{"fewer than " + std::to_string(least) + " queries (" + rule.flag + ")"};
    return quantile(seconds, q);
  };
  return {mean(seconds), at(0.50), at(0.90), at(0.99), at(0.999)};
}

InferenceMetrics inference_metrics(const std::vector<RankReport>& reports, double units) {
  InferenceMetrics metrics;
  std::size_t common = reports.empty() ? 0 : reports.front().samples.step_seconds.size();
  for (const RankReport& report : reports) {
    const auto& seconds = report.samples.step_seconds;
    metrics.latency.insert(metrics.latency.end(), seconds.begin(), seconds.end());
    metrics.queries.push_back(seconds.size());
    metrics.rank_latency.push_back(seconds.empty() ? 0 : mean(seconds));
    metrics.wall_seconds = std::max(metrics.wall_seconds, report.samples.wall_seconds);
    // In the order of their declaration a later reason is graver than an earlier one.
    metrics.stop_reason = std::max(metrics.stop_reason, report.samples.stop_reason);
    common = std::min(common, seconds.size());
    if (!seconds.empty()) metrics.median += units / median(seconds);
  }
  if (common == 0 || !(metrics.wall_seconds > 0)) return metrics;
  metrics.mean = units * static_cast<double>(metrics.latency.size()) / metrics.wall_seconds;
  metrics.jitter = median_absolute_deviation_scaled(rates(reports, common, units));
  metrics.ci95 = throughput_interval(mean_latencies(reports, common), metrics.mean);
  return metrics;
}

InferenceResult make_inference(const RecordContext& context, const InferenceFacts& facts,
                               const std::vector<RankReport>& reports) {
  const InferenceMetrics metrics =
      inference_metrics(reports, facts.units_per_step / facts.world_size);
  const Outcome outcome = outcome_of_inference(metrics);
  const ResolvedConfig& config = context.config.config;
  InferenceResult result = start_inference(context, facts.world_size, outcome);
  result.batch_size_search = batch_search_of(facts.batch_search);
  result.fused = facts.fused;
  result.quantization = quantization_of(facts.quantization);
  result.units_per_query = facts.units_per_step / facts.world_size;
  set_facts(result, facts);
  result.stop_reason = metrics.stop_reason;
  result.wall_seconds = metrics.wall_seconds > 0 ? Known(metrics.wall_seconds)
                                                 : Unknown{"the measured loop did not begin"};
  set_rates(result, outcome, rates_of(facts, metrics), "queries", "no query was answered");
  if (is_server(reports)) drop_own_rates(result);
  result.queries = static_cast<std::int64_t>(metrics.latency.size());
  result.latency_seconds = latency_of(reports, metrics);
  result.server = server_of(config, facts, reports);
  result.placement = placement_of(reports);
  result.ranks = inference_ranks(facts, reports, metrics);
  set_compute(result, facts, count_gpus(result.ranks), mean_step_of(facts, metrics));
  result.windows = windows_of(config, facts.units_per_step, reports);
  result.memory = memory_of(reports);
  result.noise = noise_of(reports);
  add_warnings(result.warnings, run_warnings(result));
  return result;
}

Json make_failed_inference_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome) {
  return unmeasured_json(start_inference(context, world_size, outcome));
}

}  // namespace scalemark
