// Throughput, step times and stragglers from the ranks' samples.
#include "result/run_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace scalemark {
namespace {

/// GPU, driver and date on which the tests of the CUDA path have passed last, as docs/gpu.md has
/// them; empty: nowhere yet.
constexpr std::string_view kProvenOn = "";
constexpr double kStragglerRatio = 1.10;

double mean_of_first(const std::vector<double>& values, std::size_t count) {
  const std::size_t n = std::min(values.size(), count);
  if (n == 0) return 0;
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), 0.0) /
         static_cast<double>(n);
}

std::size_t common_steps(const std::vector<RankReport>& reports) {
  if (reports.empty()) return 0;
  std::size_t steps = std::numeric_limits<std::size_t>::max();
  for (const RankReport& report : reports)
    steps = std::min(steps, report.samples.step_seconds.size());
  return steps;
}
}  // namespace

std::vector<bool> stragglers(const std::vector<double>& compute_seconds) {
  std::vector<bool> slow(compute_seconds.size(), false);
  if (compute_seconds.size() < 2) return slow;
  const double reference =
      compute_seconds.size() == 2 ? std::ranges::min(compute_seconds) : median(compute_seconds);
  for (std::size_t i = 0; i < slow.size(); ++i)
    slow[i] = compute_seconds[i] > kStragglerRatio * reference;
  return slow;
}

std::optional<Interval> throughput_interval(const std::vector<double>& step_seconds,
                                            double throughput) {
  const auto interval = mean_interval(step_seconds);
  if (!interval || !(interval->lo > 0) || !std::isfinite(interval->hi)) return std::nullopt;
  const double center = mean(step_seconds);
  return Interval{throughput * center / interval->hi, throughput * center / interval->lo};
}

RunMetrics run_metrics(const std::vector<RankReport>& reports) {
  RunMetrics metrics;
  const std::size_t steps = common_steps(reports);
  metrics.step_seconds.assign(steps, 0.0);
  std::vector<double> compute;
  for (const RankReport& report : reports) {
    const Samples& samples = report.samples;
    for (std::size_t i = 0; i < steps; ++i)
      metrics.step_seconds[i] = std::max(metrics.step_seconds[i], samples.step_seconds[i]);
    metrics.wall_seconds = std::max(metrics.wall_seconds, samples.wall_seconds);
    metrics.rank_step.push_back(mean_of_first(samples.step_seconds, steps));
    metrics.rank_wait.push_back(mean_of_first(samples.wait_seconds, steps));
    metrics.rank_units.push_back(
        samples.units.size() < steps ? 0 : mean_of_first(samples.units, steps));
    metrics.units_per_step += metrics.rank_units.back();
    compute.push_back(metrics.rank_step.back() - metrics.rank_wait.back());
    if (steps > 0)
      metrics.communication += samples.communication_seconds / static_cast<double>(steps);
  }
  metrics.straggler = stragglers(compute);
  if (steps == 0) return metrics;
  metrics.mean_step = metrics.wall_seconds / static_cast<double>(steps);
  metrics.wait = mean_of_first(metrics.rank_wait, metrics.rank_wait.size());
  metrics.communication /= static_cast<double>(reports.size());
  return metrics;
}

double rate_jitter(const std::vector<double>& step_seconds, double units_per_step) {
  std::vector<double> rates;
  rates.reserve(step_seconds.size());
  for (double seconds : step_seconds) rates.push_back(units_per_step / seconds);
  return median_absolute_deviation_scaled(rates);
}

void set_rates(record::Measured& result, const Outcome& outcome, const std::optional<Rates>& rates,
               const std::string& counted, const std::string& none) {
  if (outcome.is_partial()) result.partial_throughput = rates ? Known(rates->mean) : Unknown{none};
  if (!outcome.ok()) {
    result.throughput = Unknown{"status is " + to_string(outcome.status) + ", not ok"};
    return;
  }
  record::Throughput throughput;
  throughput.mean = rates->mean;
  throughput.median = rates->median;
  throughput.ci95 = {
      rates->ci95, "fewer than 30 effective samples: measure more " + counted + " (--num_batches)"};
  throughput.jitter = rates->jitter;
  throughput.per_rank_min = rates->per_rank_min;
  throughput.per_rank_max = rates->per_rank_max;
  result.throughput = throughput;
}

namespace {

Known<std::string> proven_on(const std::string& device) {
  if (device != "cuda") return Unknown{"computed on the CPU, where every test runs"};
  if (kProvenOn.empty()) return Unknown{"no GPU has run this program's tests yet: see docs/gpu.md"};
  return std::string(kProvenOn);
}

}  // namespace

void set_facts(record::Measured& result, const RunFacts& facts) {
  result.world_size = facts.world_size;
  result.precision_native = facts.precision_native;
  result.proven_on = proven_on(facts.device);
  result.device = facts.device;
  result.device_name = facts.device_name;
  result.parameters = facts.parameters;
  if (!facts.allocator.empty()) result.allocator = facts.allocator;
  set_start(result, facts.started_at);
}

namespace {

/// The first one whose name begins that of a device is its own.
constexpr PublishedPeak kPublishedPeaks[] = {
    {"NVIDIA GB200", 2500e12},
    {"NVIDIA B200", 2250e12},
    {"NVIDIA H200 NVL", 836e12},
    {"NVIDIA H200", 989e12},
    {"NVIDIA GH200", 990e12},
    {"NVIDIA H100 PCIe", 756e12},
    {"NVIDIA H100 NVL", 835e12},
    {"NVIDIA H100 80GB HBM3", 989e12},
    {"NVIDIA A100", 312e12},
    {"NVIDIA A30", 165e12},
    {"NVIDIA A10", 125e12},
    {"NVIDIA L40S", 362e12},
    {"NVIDIA L4", 121e12},
    {"Tesla V100-SXM2", 125e12, false},
    {"Tesla V100-PCIE", 112e12, false},
    {"Tesla T4", 65e12, false},
};

Known<double> published_flops(const record::Measured& result, const RunFacts& facts,
                              std::optional<int> gpus) {
  if (facts.device != "cuda") return Unknown{"of GPUs alone a vendor publishes it"};
  if (result.precision != Precision::bf16 && result.precision != Precision::fp16)
    return Unknown{"the table has peaks in bf16 and fp16"};
  const bool slice = facts.device_name.find(" MIG ") != std::string::npos;
  const auto peak = std::ranges::find_if(kPublishedPeaks, [&](const PublishedPeak& one) {
    const std::string_view name = facts.device_name;
    return name.starts_with(one.device) &&
           std::string_view(" -").find((std::string(name) + " ")[one.device.size()]) != name.npos;
  });
  if (slice || !gpus || peak == std::end(kPublishedPeaks) ||
      (result.precision == Precision::bf16 && !peak->bf16))
    return Unknown{"the table does not have this GPU, or not in this precision"};
  return peak->flops * *gpus;
}

}  // namespace

std::span<const PublishedPeak> published_peaks() { return kPublishedPeaks; }

void set_compute(record::Measured& result, const RunFacts& facts, std::optional<int> gpus,
                 double mean_step) {
  const bool known = facts.flops_per_sample > 0;
  const Unknown unknown{"the catalog states no FLOPs for this model and image size"};
  const Unknown why = known ? Unknown{"the run has no valid throughput"} : unknown;
  result.flops_per_sample = known ? Known(facts.flops_per_sample) : unknown;
  const auto samples = static_cast<double>(facts.batch.global_batch_size);
  result.achieved_flops = known && result.status == Status::ok
                              ? Known(facts.flops_per_sample * samples / mean_step)
                              : why;
  result.roofline = {};
  if (facts.gemm_flops.value_or(0) > 0) result.roofline.gemm_flops = *facts.gemm_flops;
  if (!result.achieved_flops)
    result.roofline.fraction = why;
  else if (!result.roofline.gemm_flops)
    result.roofline.fraction = Unknown{"the GEMM rate was not measured in this run"};
  else
    result.roofline.fraction = *result.achieved_flops / *result.roofline.gemm_flops;
  result.roofline.published_flops = published_flops(result, facts, gpus);
  if (!result.roofline.published_flops)
    result.roofline.published_fraction = Unknown{result.roofline.published_flops.why()};
  else if (!result.achieved_flops)
    result.roofline.published_fraction = why;
  else
    result.roofline.published_fraction = *result.achieved_flops / *result.roofline.published_flops;
}

}  // namespace scalemark
