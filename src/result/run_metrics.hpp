// What a run record derives from the ranks' samples: one small struct, one pure function,
// exact-value tests. Formulas: docs/measurements.md.
#pragma once

#include <optional>
#include <vector>

#include "result/run_record.hpp"

namespace scalemark {

/// Seconds are per step. With no steps everything is empty.
struct RunMetrics {
  std::vector<double> step_seconds;  ///< [steps]: maximum over ranks of local step i
  double wall_seconds = 0;           ///< maximum over ranks
  double mean_step = 0;              ///< wall_seconds / steps
  std::vector<double> rank_step;     ///< [ranks]: mean local step
  std::vector<double> rank_wait;     ///< [ranks]: mean wait of that
  std::vector<double> rank_units;    ///< [ranks]: mean units of a step, 0 where not told
  std::vector<bool> straggler;       ///< [ranks]
  double units_per_step = 0;         ///< of all ranks, mean over steps; 0 where they tell none
  double wait = 0;                   ///< mean over ranks
  double communication = 0;          ///< mean over ranks, first post to last completion
};
RunMetrics run_metrics(const std::vector<RankReport>& reports);

/// Ranks whose compute time is above 1.10 x the minimum (2 ranks) or the median (3 and more).
std::vector<bool> stragglers(const std::vector<double>& compute_seconds);

/// 95 % interval of units_per_step / mean step, of this launch only: the relative interval of the
/// mean of the step samples, put around `throughput`. nullopt below 30 effective samples.
std::optional<Interval> throughput_interval(const std::vector<double>& step_seconds,
                                            double throughput);

/// Units per second of all ranks together.
struct Rates {
  double mean = 0, median = 0, jitter = 0;
  double per_rank_min = 0, per_rank_max = 0;  ///< the slowest and the fastest rank
  std::optional<Interval> ci95;               ///< of `mean`, this launch only
};
/// 1.4826 x median absolute deviation of the steps' rates.
double rate_jitter(const std::vector<double>& step_seconds, double units_per_step);

/// `throughput` or `partial_throughput`. `rates` is unset where nothing was measured: `none` says
/// so. `counted`: "steps".
void fill_rates(Json& record, const Outcome& outcome, const std::optional<Rates>& rates,
                const std::string& counted, const std::string& none);

/// The parts of a record that facts and numbers fill.
void fill_facts(Json& record, const RunFacts& facts);
void fill_steps(Json& record, const RunMetrics& metrics, const std::string& reason);
/// phases: where a rank's step goes, mean over ranks and steps.
void fill_phases(Json& record, const RunFacts& facts, const std::vector<RankReport>& reports);
/// windows: throughput and machine by time, and whether the throughput drifts; of --window_seconds.
/// `units_per_step`: of all ranks.
void fill_windows(Json& record, const ResolvedConfig& config, double units_per_step,
                  const std::vector<RankReport>& reports);
void fill_communication(Json& record, const LoadedConfig& config, const RunFacts& facts,
                        const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// What the rows of embedding tables add to a step's communication, per rank.
struct EmbeddingTraffic {
  std::int64_t bytes = 0, wire_bytes = 0, messages = 0;
};
EmbeddingTraffic embedding_traffic(const RunFacts& facts, const std::vector<RankReport>& reports,
                                   const RunMetrics& metrics);
void fill_embedding(Json& record, const RunFacts& facts, const std::vector<RankReport>& reports,
                    const RunMetrics& metrics);
/// Of each rank: which, where, on what and whether it is bound as it was asked for; reasons for
/// what is unknown go to `record`.
std::vector<Json> rank_entries(Json& record, const std::vector<RankReport>& reports);
/// placement: how many ranks are on which host, in the order of ranks.
void fill_placement(Json& record, const std::vector<RankReport>& reports);
void fill_ranks(Json& record, const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// rank_steps: every rank's own time (local step less its wait) over the run, for a picture of
/// ranks by steps; means of consecutive steps where the run is long or the ranks are many.
void fill_rank_steps(Json& record, const std::vector<RankReport>& reports);
/// Of --length_distribution: tokens, padding and imbalance.
void fill_lengths(Json& record, const ResolvedConfig& config,
                  const std::vector<RankReport>& reports);
void fill_loss(Json& record, const std::vector<RankReport>& reports);
/// loss.target, from the losses that fill_loss() has seen.
void fill_target(Json& record, const LoadedConfig& config, const std::vector<RankReport>& reports);
void fill_compute(Json& record, const RunFacts& facts, const RunMetrics& metrics);
void fill_batch_search(Json& record, const std::optional<BatchSearch>& search);
void fill_input(Json& record, const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// checkpoint: of all ranks that wrote one.
void fill_checkpoint(Json& record, const ResolvedConfig& config,
                     const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// Of warm-up and measured steps.
void fill_energy(Json& record, const ResolvedConfig& config, const RunFacts& facts,
                 const std::vector<RankReport>& reports, const RunMetrics& metrics);
void fill_resources(Json& record, const std::vector<RankReport>& reports);

}  // namespace scalemark
