// The parts of a run record that speak of ranks and of what is around their steps: placement, loss,
// lengths, phases, memory, energy and noise.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "config/names.hpp"
#include "measure/stopping.hpp"
#include "result/foreign_load.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostTracePoints = 1000;

/// The largest value that any rank reports.
template <typename Get>
std::optional<double> largest(const std::vector<RankReport>& reports, Get get) {
  std::optional<double> found;
  for (const RankReport& report : reports) {
    const std::optional<double> value = get(report);
    if (value && (!found || *value > *found)) found = value;
  }
  return found;
}
/// Limits of the cells of a rank, and of all ranks together: some 400 kB of text at most.
constexpr std::size_t kMostCells = 200, kMostCellsOfAll = 20'000, kFewestCells = 10;

/// Means of local step less wait over `width` consecutive steps; the last may hold fewer.
std::vector<double> own_seconds(const Samples& samples, std::size_t steps, std::size_t width) {
  std::vector<double> cells;
  for (std::size_t begin = 0; begin < steps; begin += width) {
    const std::size_t end = std::min(steps, begin + width);
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += samples.step_seconds[i] - samples.wait_seconds[i];
    cells.push_back(sum / static_cast<double>(end - begin));
  }
  return cells;
}

/// From the first warm-up step to the end of the last of `steps` measured ones, slowest rank.
double training_seconds(const std::vector<RankReport>& reports, std::size_t steps) {
  double slowest = 0;
  for (const RankReport& report : reports) {
    const auto& times = report.samples.step_seconds;
    const auto end = times.begin() + static_cast<std::ptrdiff_t>(std::min(steps, times.size()));
    slowest =
        std::max(slowest, std::accumulate(times.begin(), end, report.samples.warm_up_seconds));
  }
  return slowest;
}

/// Sum over the ranks that were to report; nullopt where one of them could not, or none was to.
template <typename Asked, typename Value>
std::optional<double> sum_of(const std::vector<RankReport>& reports, Asked asked, Value value) {
  std::optional<double> sum;
  for (const RankReport& report : reports) {
    if (!asked(report)) continue;
    if (!value(report)) return std::nullopt;
    sum = sum.value_or(0) + *value(report);
  }
  return sum;
}

std::string why_not(const std::vector<RankReport>& reports, bool on_gpus) {
  for (const RankReport& report : reports) {
    const std::string& reason = on_gpus ? report.energy.gpu_reason : report.energy.reason;
    if (!reason.empty()) return report.host + ": " + reason;
  }
  return on_gpus ? "no rank reported its GPU's energy" : "no rank reported its host's energy";
}

record::RankPlacement placed(const RankReport& report, const BindingVerdict& binding) {
  record::RankPlacement rank;
  rank.rank = report.rank;
  rank.host = report.host;
  rank.cpus = known_text(format_cpu_list(report.affinity.cpus));
  if (!report.affinity.numa.empty())
    rank.numa = std::vector<std::int64_t>(report.affinity.numa.begin(), report.affinity.numa.end());
  rank.affinity_requested = known_text(report.affinity_requested.text);
  rank.binding.overlaps_with.assign(binding.overlaps_with.begin(), binding.overlaps_with.end());
  rank.binding.as_asked = {binding.as_asked, ""};
  rank.binding.near_gpu = {binding.near_gpu,
                           report.gpu ? "hwloc does not know which CPUs are near the GPU" : ""};
  rank.binding.crosses_numa = {binding.crosses_numa, ""};
  rank.threads = report.threads;
  if (report.gpu) rank.gpu = *report.gpu;
  rank.gpu_uuid = known_text(report.gpu_uuid);
  return rank;
}

/// Units of all ranks over the measured steps.
struct UnitSums {
  double units = 0, padded = 0, largest = 0;  ///< largest: sum of the largest rank of each step
  std::size_t steps = 0;
};
UnitSums unit_sums(const std::vector<RankReport>& reports) {
  UnitSums sums;
  for (const RankReport& report : reports) {
    sums.padded += report.samples.padded_units;
    sums.steps = report.samples.units.size();
  }
  for (std::size_t i = 0; i < sums.steps; ++i) {
    double most = 0;
    for (const RankReport& report : reports) {
      const double mine = i < report.samples.units.size() ? report.samples.units[i] : 0;
      sums.units += mine;
      most = std::max(most, mine);
    }
    sums.largest += most;
  }
  return sums;
}

}  // namespace

std::vector<record::RankPlacement> rank_placements(const std::vector<RankReport>& reports) {
  std::vector<RankPlace> places;
  for (const RankReport& report : reports)
    places.push_back({report.rank, report.host, report.affinity.cpus, report.affinity.cores,
                      report.affinity_requested, report.cpus_of_host, report.near_cpus_of_gpu,
                      report.affinity.numa, report.affinity.partial_numa});
  const auto verdicts = binding_verdicts(places);
  std::vector<record::RankPlacement> ranks;
  for (std::size_t i = 0; i < reports.size(); ++i) ranks.push_back(placed(reports[i], verdicts[i]));
  return ranks;
}

std::vector<record::HostRanks> placement_of(const std::vector<RankReport>& reports) {
  std::vector<std::string> hosts;
  for (const RankReport& report : reports) hosts.push_back(report.host);
  std::vector<record::HostRanks> placement;
  for (const auto& [host, ranks] : ranks_of_nodes(hosts)) placement.push_back({host, ranks});
  return placement;
}

std::vector<record::RunRank> run_ranks(const std::vector<RankReport>& reports,
                                       const RunMetrics& metrics) {
  const bool measured = !metrics.step_seconds.empty();
  const Unknown why{measured ? kNoWait : "no step was completed"};
  const auto placements = rank_placements(reports);
  std::vector<record::RunRank> ranks;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    record::RunRank& rank = ranks.emplace_back();
    static_cast<record::RankPlacement&>(rank) = placements[i];
    const auto known = [&](const std::vector<double>& values) -> Known<double> {
      return measured && std::isfinite(values[i]) ? Known(values[i]) : why;
    };
    rank.step_seconds_mean = known(metrics.rank_step);
    rank.wait_seconds_mean = known(metrics.rank_wait);
    rank.units_per_step = known(metrics.rank_units);
    rank.straggler = rank.wait_seconds_mean ? Known<bool>(metrics.straggler[i]) : why;
  }
  return ranks;
}

Known<record::Lengths> lengths_of(const ResolvedConfig& config, const RunFacts& facts,
                                  const std::vector<RankReport>& reports) {
  const UnitSums sums = unit_sums(reports);
  if (!(sums.units > 0)) return Unknown{"no step was completed"};
  if (config.length_distribution == LengthDistribution::fixed)
    return Unknown{"all samples are alike"};
  const auto ranks = static_cast<double>(reports.size());
  const double samples = static_cast<double>(facts.batch.batch_size_per_rank) * ranks;
  record::Lengths lengths;
  lengths.distribution = config.length_distribution;
  if (config.length_distribution == LengthDistribution::lognormal) {
    lengths.median = {config.length_median, ""};
    lengths.sigma = config.length_sigma;
  }
  lengths.longest = static_cast<double>(*config.sequence_length);
  lengths.mean = sums.units / (samples * static_cast<double>(sums.steps));
  lengths.padding_fraction = 1 - sums.units / sums.padded;
  lengths.imbalance = sums.largest / (sums.units / ranks);
  return lengths;
}

Known<record::Loss> loss_of(const ResolvedConfig& config, const std::vector<RankReport>& reports) {
  if (reports.empty() || reports.front().samples.loss.empty())
    return Unknown{"no loss was computed"};
  const Samples& samples = reports.front().samples;
  const std::vector<double>& values = samples.loss;
  record::Loss loss;
  loss.first = values.front();
  loss.last = values.back();
  const std::size_t stride = (values.size() + kMostTracePoints - 1) / kMostTracePoints;
  for (std::size_t i = 0; i < values.size(); i += stride) loss.trace.push_back(values[i]);
  loss.trace_stride = static_cast<std::int64_t>(stride);
  if (const auto& scaling = samples.loss_scaling)
    loss.scaling = record::ScalingOfLoss{scaling->initial, scaling->last, scaling->dynamic,
                                         scaling->skipped_steps};
  // A loss that is not finite ends the loop before it joins the trace.
  loss.diverged = samples.stop_reason == StopReason::non_finite || diverged(values);
  loss.target = target_of(config, reports);
  return loss;
}

Known<record::TargetLoss> target_of(const ResolvedConfig& config,
                                    const std::vector<RankReport>& reports) {
  if (!config.target_loss) return Unknown{"no --target_loss was asked for"};
  const auto measured = steps_to_loss(reports.front().samples.loss, *config.target_loss);
  record::TargetLoss target;
  target.loss = *config.target_loss;
  target.reached = measured.has_value();
  if (measured) {
    target.steps = config.num_warmup_batches + static_cast<std::int64_t>(*measured);
    target.seconds = training_seconds(reports, *measured);
  } else {
    target.steps = Unknown{"the loss did not come down to the target"};
    target.seconds = Unknown{"the loss did not come down to the target"};
  }
  return target;
}

Known<record::Phases> phases_of(const RunFacts& facts, const std::vector<RankReport>& reports) {
  if (facts.records_steps)
    return Unknown{
        "the device repeats a recorded step (`--cuda_graph`), of whose parts it tells no times"};
  PhaseSeconds mean{};  // over ranks, a step
  for (const RankReport& report : reports) {
    const auto steps = static_cast<double>(report.samples.step_seconds.size());
    for (std::size_t i = 0; i < mean.size() && steps > 0; ++i)
      mean[i] += report.samples.phase_seconds[i] / steps / static_cast<double>(reports.size());
  }
  const double step = std::accumulate(mean.begin(), mean.end(), 0.);
  if (!(step > 0)) return Unknown{"no step was completed"};
  const bool cuda = facts.device == "cuda";
  const auto values = [&](double of) {
    const auto at = [&](StepPhase phase) { return mean[static_cast<std::size_t>(phase)] / of; };
    Known<double> communication = at(StepPhase::communication);
    if (cuda && facts.reducer == "c10d")
      communication = Unknown{"c10d's stream waits within the backward pass, where it is counted"};
    return record::PhaseValues{at(StepPhase::input),     at(StepPhase::forward),
                               at(StepPhase::backward),  communication,
                               at(StepPhase::optimizer), at(StepPhase::checkpoint),
                               at(StepPhase::agreement), at(StepPhase::rest)};
  };
  return record::Phases{cuda ? "events of the stream" : "host", values(1), values(step)};
}

Known<record::RankSteps> rank_steps_of(const std::vector<RankReport>& reports) {
  std::size_t steps = reports.empty() ? 0 : reports.front().samples.step_seconds.size();
  bool known = true;
  for (const RankReport& report : reports) {
    steps = std::min(steps, report.samples.step_seconds.size());
    known = known && report.samples.wait_seconds.size() >= steps;
  }
  if (steps == 0) return Unknown{"no step was completed"};
  const std::size_t most = std::clamp(kMostCellsOfAll / reports.size(), kFewestCells, kMostCells);
  const std::size_t width = (steps + most - 1) / most;
  record::RankSteps cells;
  cells.steps_per_cell = static_cast<std::int64_t>(width);
  for (const RankReport& report : reports) {
    if (!known) break;
    cells.compute_seconds.push_back(own_seconds(report.samples, steps, width));
    known = std::ranges::all_of(cells.compute_seconds.back(),
                                [](double cell) { return std::isfinite(cell); });
  }
  if (!known) return Unknown{kNoWait};
  return cells;
}

Known<record::BatchSizeSearch> batch_search_of(const std::optional<BatchSearch>& search) {
  if (!search) return Unknown{"--batch_size max was not asked for"};
  record::BatchSizeSearch found;
  found.requested = "max";
  for (const BatchTrial& trial : search->tried)
    found.tried.push_back({trial.batch_size, trial.fits, trial.seconds, trial.peak_bytes});
  found.limit_bytes = {search->limit_bytes, ""};
  found.limited_by = search->limited_by;
  return found;
}

Known<record::Input> input_of(const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const auto steps = static_cast<double>(metrics.step_seconds.size());
  if (reports.empty() || steps == 0) return Unknown{"no step was completed"};
  record::Input input;
  input.place = reports.front().samples.input.place;
  input.bytes_per_step = reports.front().samples.input.bytes_per_step;
  for (const RankReport& report : reports) {  // means over ranks
    const double share = steps * static_cast<double>(reports.size());
    input.copy_seconds += report.samples.input.copy_seconds / share;
    input.wait_seconds += report.samples.input.wait_seconds / share;
  }
  return input;
}

record::EnergyUse energy_of(const ResolvedConfig& config, const RunFacts& facts,
                            const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const auto host = sum_of(
      reports, [](const RankReport& r) { return r.energy_of_host; },
      [](const RankReport& r) { return r.energy.host_joules; });
  const auto gpu = sum_of(
      reports, [](const RankReport& r) { return !r.gpu_uuid.empty(); },
      [](const RankReport& r) { return r.energy.gpu_joules; });
  const bool on_gpus = facts.device == "cuda";
  const auto steps = static_cast<std::int64_t>(metrics.step_seconds.size());
  const auto samples = static_cast<double>(facts.batch.global_batch_size *
                                           (steps > 0 ? config.num_warmup_batches + steps : 0));
  std::optional<double> joules;
  if (samples > 0 && (on_gpus ? gpu : host)) joules = host.value_or(0) + gpu.value_or(0);
  record::EnergyUse energy;
  if (joules && *joules > 0) {
    energy.joules_per_sample = *joules / samples;
    energy.source = std::string(!on_gpus ? "rapl" : host ? "nvml+rapl" : "nvml");
  } else {
    energy.joules_per_sample = Unknown{joules ? "the counters did not move during the measurement"
                                              : why_not(reports, on_gpus)};
  }
  return energy;
}

record::Memory memory_of(const std::vector<RankReport>& reports) {
  std::int64_t rss = 0;
  std::optional<std::int64_t> gpu;
  for (const RankReport& report : reports) {
    rss = std::max(rss, report.peak_rss_bytes);
    if (report.peak_gpu_bytes) gpu = std::max(gpu.value_or(0), *report.peak_gpu_bytes);
  }
  return {rss, {gpu, ""}};
}

record::RunMemory run_memory_of(const std::vector<RankReport>& reports) {
  const auto most = [&](std::int64_t RankReport::*bytes) {
    std::int64_t found = 0;
    for (const RankReport& report : reports) found = std::max(found, report.*bytes);
    return found;
  };
  record::RunMemory memory{memory_of(reports), {}, {}, {}, {}};
  memory.gradient_buffer_bytes = most(&RankReport::gradient_buffer_bytes);
  memory.weight_bytes = most(&RankReport::weight_bytes);
  memory.optimizer_state_bytes = most(&RankReport::optimizer_state_bytes);
  memory.batch_bytes = most(&RankReport::batch_bytes);
  return memory;
}

record::Noise noise_of(const std::vector<RankReport>& reports) {
  record::Noise noise;
  std::int64_t switches = 0;
  std::set<std::string> hosts;
  noise.error_counters.emplace();
  for (const RankReport& report : reports) {
    switches += report.noise.context_switches;
    if (!hosts.insert(report.host).second) continue;  // ranks of one host see the same interfaces
    for (const auto& [name, count] : report.noise.error_counters)
      noise.error_counters->emplace_back(report.host + ":" + name, count);
  }
  noise.context_switches = switches;
  noise.steal = {largest(reports, [](auto& r) { return r.noise.steal; }), ""};
  noise.foreign = {most_foreign(foreign_loads(reports)), ""};
  noise.throttled = {largest(reports, [](auto& r) { return r.noise.throttled_seconds; }), ""};
  noise.load = {largest(reports, [](auto& r) { return r.noise.load1; }), ""};
  return noise;
}

record::RunNoise run_noise_of(const std::vector<RankReport>& reports) {
  record::RunNoise noise{noise_of(reports), 0.};
  for (const RankReport& report : reports)
    noise.communication_cpu_seconds =
        *noise.communication_cpu_seconds + report.communication_cpu_seconds;
  return noise;
}

}  // namespace scalemark
