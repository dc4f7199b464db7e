// The run record, put together from what the ranks report.
#include "result/run_record.hpp"

#include <algorithm>

#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"
#include "record/write.hpp"
#include "result/run_metrics.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {
RunResult start_run(const RecordContext& context, int world_size, const Outcome& outcome) {
  RunResult run;
  set_context(run, "run", context, outcome);
  const ResolvedConfig& config = context.config.config;
  run.model = config.model;
  run.world_size = world_size;
  run.precision = config.precision;
  run.kernels = *config.kernels;
  run.scaling = config.scaling;
  return run;
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

void set_steps(RunResult& run, const RunMetrics& metrics) {
  const Unknown open{"the loop did not reach its closing synchronised point"};
  const bool closed = metrics.wall_seconds > 0;
  run.steps = static_cast<std::int64_t>(metrics.step_seconds.size());
  run.wall_seconds = closed ? Known(metrics.wall_seconds) : open;
  if (metrics.step_seconds.empty()) {
    run.step_seconds = Unknown{"no step was completed"};
    return;
  }
  record::Summary steps;
  steps.mean = closed ? Known(metrics.mean_step) : open;
  steps.p50 = quantile(metrics.step_seconds, 0.50);
  steps.p90 = quantile(metrics.step_seconds, 0.90);
  steps.p99 = quantile(metrics.step_seconds, 0.99);
  steps.samples = metrics.step_seconds;
  run.step_seconds = steps;
}

void set_loop(RunResult& run, const std::vector<RankReport>& reports) {
  if (reports.empty()) return;
  const Samples& samples = reports.front().samples;
  run.stop_reason = samples.stop_reason;
  if (samples.slices > 0) run.turns = record::Interleaving{samples.slices, samples.paused_seconds};
}
}  // namespace

RunResult make_run(const RecordContext& context, const RunFacts& given,
                   const std::vector<RankReport>& reports) {
  const RunMetrics metrics = run_metrics(reports);
  const Outcome outcome = outcome_of_run(reports, metrics);
  const ResolvedConfig& config = context.config.config;
  RunFacts facts = given;
  if (metrics.units_per_step > 0) facts.units_per_step = metrics.units_per_step;
  RunResult run = start_run(context, facts.world_size, outcome);
  run.config_hash = config_hash(config, facts.world_size);
  run.unit = facts.unit;
  run.batch_size_per_rank = facts.batch.batch_size_per_rank;
  run.global_batch_size = facts.batch.global_batch_size;
  run.units_per_step = facts.units_per_step;
  set_facts(run, facts);
  set_rates(run, outcome, rates_of(facts, metrics), "steps", "no step was completed");
  set_steps(run, metrics);
  set_loop(run, reports);
  run.phases = phases_of(facts, reports);
  run.windows = windows_of(config, facts.units_per_step, reports);
  run.batch_size_search = batch_search_of(facts.batch_search);
  run.communication = communication_of(config, facts, reports, metrics);
  run.input = input_of(reports, metrics);
  run.checkpoint = checkpoint_of(config, reports, metrics);
  run.placement = placement_of(reports);
  run.ranks = run_ranks(reports, metrics);
  run.rank_steps = rank_steps_of(reports);
  run.loss = loss_of(config, reports);
  run.lengths = lengths_of(config, facts, reports);
  set_compute(run, facts, count_gpus(run.ranks), metrics.mean_step);
  run.energy = energy_of(config, facts, reports, metrics);
  run.memory = run_memory_of(reports);
  run.noise = run_noise_of(reports);
  add_warnings(run.warnings, run_warnings(run));
  return run;
}

RunResult make_failed_run(const RecordContext& context, int world_size, const Outcome& outcome) {
  const ResolvedConfig& config = context.config.config;
  RunResult run = start_run(context, world_size, outcome);
  if (find_model(config.model)) run.unit = unit_of(config);
  try {
    const BatchPlan batch = plan_batch(config, world_size);
    run.batch_size_per_rank = batch.batch_size_per_rank;
    run.global_batch_size = batch.global_batch_size;
    run.config_hash = config_hash(config, world_size);
  } catch (const ConfigError&) {
    // The batch itself may be what failed; then these are unknown, and so is the hash of the run.
  }
  return run;
}

Json make_failed_record(const RecordContext& context, int world_size, const Outcome& outcome) {
  return unmeasured_json(make_failed_run(context, world_size, outcome));
}

}  // namespace scalemark
