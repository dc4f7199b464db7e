// The run record: a skeleton in which every key is null with a reason, and the parts that fill it.
#include "result/run_record.hpp"

#include <algorithm>
#include <cmath>

#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {
/// All keys in their order; what the configuration and the machine say is filled in.
Json skeleton(const LoadedConfig& config, int world_size, Status status, const std::string& reason,
              const SystemInfo& system, const std::map<std::string, std::string>& environment) {
  Json record = start_record("run", status, reason,
                             {"model",
                              "unit",
                              "world_size",
                              "batch_size_per_rank",
                              "global_batch_size",
                              "batch_size_search",
                              "units_per_step",
                              "precision",
                              "precision_native",
                              "scaling",
                              "device",
                              "device_name",
                              "config",
                              "config_hash",
                              "throughput",
                              "partial_throughput",
                              "step_seconds",
                              "steps",
                              "stop_reason",
                              "communication",
                              "input",
                              "checkpoint",
                              "ranks",
                              "loss",
                              "lengths",
                              "parameters",
                              "flops_per_sample",
                              "achieved_flops",
                              "roofline",
                              "memory",
                              "energy",
                              "noise",
                              "preflight",
                              "system",
                              "environment",
                              "allocator",
                              "started_at",
                              "wall_seconds"},
                             config, world_size, system, environment);
  record["scaling"] = to_string(config.config.scaling);
  return record;
}

void fill_facts(Json& record, const RunFacts& facts) {
  record["unit"] = facts.unit;
  record["batch_size_per_rank"] = facts.batch.batch_size_per_rank;
  record["global_batch_size"] = facts.batch.global_batch_size;
  set_number(record, "units_per_step", facts.units_per_step, "");
  record["precision_native"] = facts.precision_native;
  record["device"] = facts.device;
  record["device_name"] = facts.device_name;
  record["parameters"] = facts.parameters;
  if (!facts.allocator.empty()) record["allocator"] = facts.allocator;
  if (!facts.started_at.empty()) record["started_at"] = facts.started_at;
}

void fill_rates(Json& record, const RunFacts& facts, const RunMetrics& metrics) {
  const bool measured = !metrics.step_seconds.empty() && metrics.wall_seconds > 0;
  const bool partial = facts.status == Status::interrupted || facts.status == Status::timeout;
  if (facts.status == Status::ok) {
    fill_throughput(record, facts, metrics);
  } else {
    set_unavailable(record, "throughput", "status is " + to_string(facts.status) + ", not ok");
  }
  set_number(
      record, "partial_throughput",
      partial && measured ? std::optional(facts.units_per_step / metrics.mean_step) : std::nullopt,
      partial ? "no step was completed" : "only of runs that were interrupted or timed out");
  set_number(record, "wall_seconds",
             metrics.wall_seconds > 0 ? std::optional(metrics.wall_seconds) : std::nullopt,
             "the loop did not reach its closing synchronised point");
}

/// Only of a run that took turns with another.
void fill_turns(Json& record, const std::vector<RankReport>& reports) {
  if (reports.empty() || reports.front().samples.turns == 0) return;
  const Samples& samples = reports.front().samples;
  record["turns"] = {{"count", samples.turns}, {"paused_seconds", samples.paused_seconds}};
}

/// The status after the checks that belong to a record: no number of a run with a loss that is not
/// finite is published.
RunFacts judged(RunFacts facts, const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  if (facts.status != Status::ok) return facts;
  const auto finite = [](double value) { return std::isfinite(value); };
  for (const RankReport& report : reports) {
    if (std::ranges::all_of(report.samples.loss, finite)) continue;
    facts.status = Status::invalid;
    facts.reason = "the loss is not finite on rank " + std::to_string(report.rank);
    return facts;
  }
  if (metrics.step_seconds.empty() || !(metrics.wall_seconds > 0) ||
      !std::ranges::all_of(metrics.step_seconds,
                           [](double s) { return std::isfinite(s) && s > 0; }))
    throw RunError(
        "the run has no measured steps: every rank must report at least one step of more than 0 s");
  return facts;
}
}  // namespace

Json make_run_record(const LoadedConfig& config, const RunFacts& given,
                     const std::vector<RankReport>& reports, const SystemInfo& system,
                     const std::map<std::string, std::string>& environment) {
  const RunMetrics metrics = run_metrics(reports);
  RunFacts facts = judged(given, reports, metrics);
  if (metrics.units_per_step > 0) facts.units_per_step = metrics.units_per_step;
  Json record = skeleton(config, facts.world_size, facts.status, facts.reason, system, environment);
  record["config_hash"] = config_hash(config.config, facts.world_size);
  fill_facts(record, facts);
  fill_rates(record, facts, metrics);
  fill_steps(record, metrics, "no step was completed");
  fill_turns(record, reports);
  if (!reports.empty()) record["stop_reason"] = to_string(reports.front().samples.stop_reason);
  fill_batch_search(record, facts.batch_search);
  fill_communication(record, config, facts, reports, metrics);
  fill_input(record, reports, metrics);
  fill_checkpoint(record, reports, metrics);
  fill_ranks(record, reports, metrics);
  fill_loss(record, reports);
  fill_lengths(record, config.config, reports);
  fill_target(record, config, reports);
  fill_compute(record, facts, metrics);
  fill_energy(record, config.config, facts, reports, metrics);
  fill_resources(record, reports);
  explain_nulls(record, "not reported by the engine");
  return record;
}

Json make_failed_record(const LoadedConfig& config, int world_size, Status status,
                        const std::string& reason, const SystemInfo& system,
                        const std::map<std::string, std::string>& environment) {
  Json record = skeleton(config, world_size, status, reason, system, environment);
  const std::string why =
      "the run ended before it was measured: " + record["reason"].get<std::string>();
  if (const auto model = find_model(config.config.model)) record["unit"] = model->unit;
  try {
    const BatchPlan batch = plan_batch(config.config, world_size);
    record["batch_size_per_rank"] = batch.batch_size_per_rank;
    record["global_batch_size"] = batch.global_batch_size;
    record["config_hash"] = config_hash(config.config, world_size);
  } catch (const ConfigError&) {
    // The batch itself may be what failed; then these are unknown, and so is the hash of the run.
  }
  record["ranks"] = Json::array();
  for (const auto& [part, keys] :
       {std::pair<std::string, std::vector<std::string>>{"roofline", {"gemm_flops", "fraction"}},
        {"memory",
         {"peak_rss_bytes", "peak_gpu_bytes", "gradient_buffer_bytes", "weight_bytes",
          "optimizer_state_bytes", "batch_bytes"}},
        {"energy", {"joules_per_sample", "source"}},
        {"noise",
         {"steal", "throttled", "load", "context_switches", "communication_cpu_seconds",
          "error_counters"}}}) {
    record[part] = Json::object();
    for (const std::string& key : keys) set_unavailable(record, part + "." + key, why);
  }
  explain_nulls(record, why);
  return record;
}

}  // namespace scalemark
