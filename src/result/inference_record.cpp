// The inference record: a skeleton in which every key is null, and the parts that fill it.
#include "result/inference_record.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"
#include "result/run_metrics.hpp"
#include "result/trace_record.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

struct NamedQuantile {
  const char* key;
  double q;
};
constexpr std::array<NamedQuantile, 4> kQuantiles{
    {{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}, {"p99_9", 0.999}}};

Json start_inference_record(const RecordContext& context, int world_size, const Outcome& outcome) {
  Json record = start_record("inference", context, outcome);
  const ResolvedConfig& keys = context.config.config;
  record["model"] = keys.model;
  record["world_size"] = world_size;
  record["precision"] = to_string(keys.precision);
  record["mode"] = to_string(keys.mode);
  if (!keys.largest_batch || keys.batch_size) {  // else nobody knows yet
    record["config_hash"] = config_hash(keys, world_size, Command::infer);
    record["batch_size_per_rank"] = plan_batch(keys, world_size).batch_size_per_rank;
  }
  if (find_model(keys.model)) record["unit"] = unit_of(keys);
  return record;
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

void fill_latency(Json& record, const std::vector<RankReport>& reports,
                  const InferenceMetrics& metrics) {
  record["queries"] = metrics.latency.size();
  if (metrics.latency.empty())
    return set_unavailable(record, "latency_seconds", "no query was answered");
  QuantileRule rule;
  if (is_server(reports)) {
    rule = server_quantiles(ServerEnd::all_served);
    for (const RankReport& report : reports)
      if (report.samples.server->ended_by != ServerEnd::all_served)
        rule = server_quantiles(report.samples.server->ended_by);
  }
  fill_quantiles(record, "latency_seconds", metrics.latency, rule);
  record["latency_seconds"]["samples"] = metrics.latency;
}

/// What a rank answers is what it is offered: no rate of its own follows from its latencies.
void drop_own_rates(Json& record) {
  if (!record["throughput"].is_object()) return;
  for (const char* key : {"median", "jitter", "per_rank_min", "per_rank_max", "ci95"})
    set_unavailable(record, std::string("throughput.") + key,
                    "queries arrive at the rate that is offered (--mode server)");
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

void fill_rank_entries(Json& record, const InferenceFacts& facts,
                       const std::vector<RankReport>& reports, const InferenceMetrics& metrics) {
  const auto slow = stragglers(rank_service(reports, metrics));
  const bool comparable = std::ranges::all_of(metrics.queries, [](auto n) { return n > 0; });
  const double units = facts.units_per_step / facts.world_size;
  const auto entries = rank_entries(record, reports);
  record["ranks"] = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    Json rank = entries[i];
    const bool answered = metrics.queries[i] > 0;
    rank["queries"] = metrics.queries[i];
    rank["latency_seconds_mean"] = answered ? Json(metrics.rank_latency[i]) : Json(nullptr);
    rank["throughput"] = answered ? Json(units / metrics.rank_latency[i]) : Json(nullptr);
    if (reports[i].samples.server && answered)
      rank["throughput"] =
          units * static_cast<double>(metrics.queries[i]) / reports[i].samples.wall_seconds;
    rank["straggler"] = comparable ? Json(static_cast<bool>(slow[i])) : Json(nullptr);
    for (const char* key : {"latency_seconds_mean", "throughput", "straggler"})
      if (rank[key].is_null())
        record["unavailable"][std::string("ranks.") + key] = "a rank answered no query";
    record["ranks"].push_back(std::move(rank));
  }
}

void fill_quantization(Json& record, const std::optional<QuantizationFacts>& made) {
  if (!made) return set_unavailable(record, "quantization", "--precision int8 was not asked for");
  record["quantization"] = {{"layers", made->layers},
                            {"weights", "symmetric, per output channel"},
                            {"convolution_activations", "per tensor, ranges of one fp32 pass"},
                            {"product_activations", "per tensor, range of each input"}};
  set_number(record, "quantization.relative_error", made->relative_error, "");
}

void fill_flops(Json& record, const InferenceFacts& facts, const InferenceMetrics& metrics) {
  RunMetrics steps;  // as if all ranks took the queries in step
  const auto answered = static_cast<double>(metrics.latency.size());
  if (answered > 0) steps.mean_step = metrics.wall_seconds * facts.world_size / answered;
  fill_compute(record, facts, steps);
}

}  // namespace

std::size_t samples_for_quantile(double q, double beyond) {
  return static_cast<std::size_t>(std::lround(beyond / (1 - q)));
}

QuantileRule server_quantiles(ServerEnd end) {
  return {10, "--min_query_count", server_end_reason(end)};
}

void fill_quantiles(Json& record, const std::string& path, const std::vector<double>& seconds,
                    const QuantileRule& rule) {
  set_number(record, path + ".mean", mean(seconds), "");
  for (const auto& [key, q] : kQuantiles) {
    const std::size_t least = samples_for_quantile(q, rule.beyond);
    const bool stated = rule.never.empty() && seconds.size() >= least;
    set_number(
        record, path + "." + key, stated ? std::optional(quantile(seconds, q)) : std::nullopt,
        rule.never.empty() ? "fewer than " + std::to_string(least) + " queries (" + rule.flag + ")"
                           : rule.never);
  }
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

Json make_inference_record(const RecordContext& context, const InferenceFacts& facts,
                           const std::vector<RankReport>& reports) {
  const InferenceMetrics metrics =
      inference_metrics(reports, facts.units_per_step / facts.world_size);
  const Outcome outcome = outcome_of_inference(metrics);
  Json record = start_inference_record(context, facts.world_size, outcome);
  fill_batch_search(record, facts.batch_search);
  record["fused"] = facts.fused;
  fill_quantization(record, facts.quantization);
  set_number(record, "units_per_query", facts.units_per_step / facts.world_size, "");
  fill_facts(record, facts);
  record["stop_reason"] = to_string(metrics.stop_reason);
  set_number(record, "wall_seconds",
             metrics.wall_seconds > 0 ? std::optional(metrics.wall_seconds) : std::nullopt,
             "the measured loop did not begin");
  fill_rates(record, outcome, rates_of(facts, metrics), "queries", "no query was answered");
  if (is_server(reports)) drop_own_rates(record);
  fill_latency(record, reports, metrics);
  fill_server(record, context.config.config, facts, reports);
  fill_placement(record, reports);
  fill_rank_entries(record, facts, reports, metrics);
  fill_flops(record, facts, metrics);
  fill_windows(record, context.config.config, facts.units_per_step, reports);
  fill_resources(record, reports);
  fill_no_trace(record, "--trace was not asked for");
  explain_nulls(record, "", "not reported by the engine");
  add_warnings(record, run_warnings(record));
  return record;
}

Json make_failed_inference_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome) {
  Json record = start_inference_record(context, world_size, outcome);
  explain_nulls(record, "",
                "the run ended before it was measured: " + record["reason"].get<std::string>());
  return record;
}

}  // namespace scalemark
