// What a run record derives from the ranks' samples: one small struct, one pure function,
// exact-value tests. Formulas: docs/measurements.md.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/run.hpp"
#include "result/run_record.hpp"

namespace scalemark {

/// Why waits are unknown.
inline constexpr const char* kNoWait =
    "neither c10d nor a recorded step (`--cuda_graph`) tells how long the device waited for "
    "communication";

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
void set_rates(record::Measured& result, const Outcome& outcome, const std::optional<Rates>& rates,
               const std::string& counted, const std::string& none);
void set_facts(record::Measured& result, const RunFacts& facts);
/// A GPU's dense peak in bf16 and fp16 as its vendor publishes it. docs/measurements.md has date
/// and sources.
struct PublishedPeak {
  std::string_view device;  ///< its name, or the first words of it
  double flops;             ///< a second
  bool bf16 = true;         ///< it has units for bf16, not for fp16 alone
};
std::span<const PublishedPeak> published_peaks();
/// Returns how many GPUs ranks use, by UUID, or by host and number where the driver tells none;
/// nullopt where a rank uses none.
template <std::derived_from<record::RankPlacement> Rank>
std::optional<int> count_gpus(const std::vector<Rank>& ranks) {
  std::set<std::string> gpus;
  for (const Rank& rank : ranks) {
    if (!rank.gpu) return std::nullopt;
    gpus.insert(rank.gpu_uuid.value_or(fmt::format("{}:{}", rank.host, *rank.gpu)));
  }
  return static_cast<int>(gpus.size());
}

/// achieved_flops and roofline. `gpus`: count_gpus(). `mean_step`: of a step, seconds.
void set_compute(record::Measured& result, const RunFacts& facts, std::optional<int> gpus,
                 double mean_step);

/// Which rank ran where, on what, and whether it is bound as it was asked for.
std::vector<record::RankPlacement> rank_placements(const std::vector<RankReport>& reports);
/// How many ranks are on which host, in the order of ranks.
std::vector<record::HostRanks> placement_of(const std::vector<RankReport>& reports);
/// What disturbed the ranks; of the worst host, or of all ranks together.
record::Noise noise_of(const std::vector<RankReport>& reports);
record::Memory memory_of(const std::vector<RankReport>& reports);
Known<record::BatchSizeSearch> batch_search_of(const std::optional<BatchSearch>& search);
/// Throughput and machine by time, and whether the throughput drifts; of --window_seconds.
/// `units_per_step`: of all ranks.
Known<record::Windows> windows_of(const ResolvedConfig& config, double units_per_step,
                                  const std::vector<RankReport>& reports);

/// What the rows of embedding tables add to a step's communication, per rank.
struct EmbeddingTraffic {
  std::int64_t bytes = 0, wire_bytes = 0, messages = 0;
};
EmbeddingTraffic embedding_traffic(const RunFacts& facts, const std::vector<RankReport>& reports,
                                   const RunMetrics& metrics);
Known<record::Embedding> embedding_of(const RunFacts& facts, const std::vector<RankReport>& reports,
                                      const RunMetrics& metrics);
record::Communication communication_of(const ResolvedConfig& config, const RunFacts& facts,
                                       const std::vector<RankReport>& reports,
                                       const RunMetrics& metrics);
std::vector<record::RunRank> run_ranks(const std::vector<RankReport>& reports,
                                       const RunMetrics& metrics);
Known<record::Input> input_of(const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// Returns tokens, padding and imbalance under --length_distribution.
Known<record::Lengths> lengths_of(const ResolvedConfig& config, const RunFacts& facts,
                                  const std::vector<RankReport>& reports);
Known<record::Loss> loss_of(const ResolvedConfig& config, const std::vector<RankReport>& reports);
record::RunMemory run_memory_of(const std::vector<RankReport>& reports);
record::RunNoise run_noise_of(const std::vector<RankReport>& reports);
/// What checkpoints cost, of all ranks that wrote one: measured, and on other storage.
Known<record::Checkpoint> checkpoint_of(const ResolvedConfig& config,
                                        const std::vector<RankReport>& reports,
                                        const RunMetrics& metrics);
/// Returns the energy of warm-up and measured steps.
record::EnergyUse energy_of(const ResolvedConfig& config, const RunFacts& facts,
                            const std::vector<RankReport>& reports, const RunMetrics& metrics);
/// Where a rank's step goes, mean over ranks and steps.
Known<record::Phases> phases_of(const RunFacts& facts, const std::vector<RankReport>& reports);
/// Every rank's own time (local step less its wait) over the run, for a picture of ranks by steps;
/// means of consecutive steps where the run is long or the ranks are many.
Known<record::RankSteps> rank_steps_of(const std::vector<RankReport>& reports);
/// How long the training took to come down to --target_loss.
Known<record::TargetLoss> target_of(const ResolvedConfig& config,
                                    const std::vector<RankReport>& reports);

}  // namespace scalemark
