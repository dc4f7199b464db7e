// The run record: a skeleton in which every key is null with a reason, and the parts that fill it.
#include "result/run_record.hpp"

#include <algorithm>

#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"
#include "result/run_metrics.hpp"
#include "result/trace_record.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {
Json start_run_record(const RecordContext& context, int world_size, const Outcome& outcome) {
  Json record = start_record("run", context, outcome);
  const ResolvedConfig& config = context.config.config;
  record["model"] = config.model;
  record["world_size"] = world_size;
  record["precision"] = to_string(config.precision);
  record["scaling"] = to_string(config.scaling);
  return record;
}

std::optional<Rates> rates_of(const RunFacts& facts, const RunMetrics& metrics) {
  if (metrics.step_seconds.empty() || !(metrics.wall_seconds > 0)) return std::nullopt;
  const auto [fastest, slowest] = std::ranges::minmax(metrics.rank_step);
  const double share = facts.units_per_step / static_cast<double>(metrics.rank_step.size());
  const double mean = facts.units_per_step / metrics.mean_step;
  return Rates{mean,
               facts.units_per_step / median(metrics.step_seconds),
               rate_jitter(metrics.step_seconds, facts.units_per_step),
               share / slowest,
               share / fastest,
               throughput_interval(metrics.step_seconds, mean)};
}

void fill_turns(Json& record, const std::vector<RankReport>& reports) {
  if (reports.empty() || reports.front().samples.turns == 0)
    return set_unavailable(record, "turns", "the run took turns with no other");
  const Samples& samples = reports.front().samples;
  record["turns"] = {{"count", samples.turns}, {"paused_seconds", samples.paused_seconds}};
}
}  // namespace

Json make_run_record(const RecordContext& context, const RunFacts& given,
                     const std::vector<RankReport>& reports) {
  const RunMetrics metrics = run_metrics(reports);
  const Outcome outcome = outcome_of_run(reports, metrics);
  const LoadedConfig& config = context.config;
  RunFacts facts = given;
  if (metrics.units_per_step > 0) facts.units_per_step = metrics.units_per_step;
  Json record = start_run_record(context, facts.world_size, outcome);
  record["config_hash"] = config_hash(config.config, facts.world_size);
  record["unit"] = facts.unit;
  record["batch_size_per_rank"] = facts.batch.batch_size_per_rank;
  record["global_batch_size"] = facts.batch.global_batch_size;
  set_number(record, "units_per_step", facts.units_per_step, "");
  fill_facts(record, facts);
  fill_rates(record, outcome, rates_of(facts, metrics), "steps", "no step was completed");
  set_number(record, "wall_seconds",
             metrics.wall_seconds > 0 ? std::optional(metrics.wall_seconds) : std::nullopt,
             "the loop did not reach its closing synchronised point");
  fill_steps(record, metrics, "no step was completed");
  fill_phases(record, facts, reports);
  fill_turns(record, reports);
  fill_windows(record, config.config, facts.units_per_step, reports);
  if (!reports.empty()) record["stop_reason"] = to_string(reports.front().samples.stop_reason);
  fill_batch_search(record, facts.batch_search);
  fill_communication(record, config, facts, reports, metrics);
  fill_input(record, reports, metrics);
  fill_checkpoint(record, config.config, reports, metrics);
  fill_placement(record, reports);
  fill_ranks(record, reports, metrics);
  fill_rank_steps(record, reports);
  fill_loss(record, reports);
  fill_lengths(record, config.config, reports);
  fill_target(record, config, reports);
  fill_compute(record, facts, metrics);
  fill_energy(record, config.config, facts, reports, metrics);
  fill_resources(record, reports);
  fill_no_trace(record, "--trace was not asked for");
  explain_nulls(record, "", "not reported by the engine");
  add_warnings(record, run_warnings(record));
  return record;
}

Json make_failed_record(const RecordContext& context, int world_size, const Outcome& outcome) {
  const ResolvedConfig& config = context.config.config;
  Json record = start_run_record(context, world_size, outcome);
  const std::string why =
      "the run ended before it was measured: " + record["reason"].get<std::string>();
  if (find_model(config.model)) record["unit"] = unit_of(config);
  try {
    const BatchPlan batch = plan_batch(config, world_size);
    record["batch_size_per_rank"] = batch.batch_size_per_rank;
    record["global_batch_size"] = batch.global_batch_size;
    record["config_hash"] = config_hash(config, world_size);
  } catch (const ConfigError&) {
    // The batch itself may be what failed; then these are unknown, and so is the hash of the run.
  }
  explain_nulls(record, "", why);
  return record;
}

}  // namespace scalemark
