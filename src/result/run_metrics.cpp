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

void fill_rates(Json& record, const Outcome& outcome, const std::optional<Rates>& rates,
                const std::string& counted, const std::string& none) {
  const bool partial = outcome.is_partial();
  set_number(record, "partial_throughput",
             partial && rates ? std::optional(rates->mean) : std::nullopt,
             partial ? none : "only of runs that were interrupted or timed out");
  if (!outcome.ok())
    return set_unavailable(record, "throughput",
                           "status is " + to_string(outcome.status) + ", not ok");
  record["throughput"] = {{"mean", nullptr}, {"median", nullptr}, {"ci95", or_null(rates->ci95)}};
  record["throughput"]["ci95_scope"] = "this launch only";
  for (const auto& [key, rate] : {std::pair{"mean", rates->mean},
                                  {"median", rates->median},
                                  {"jitter", rates->jitter},
                                  {"per_rank_min", rates->per_rank_min},
                                  {"per_rank_max", rates->per_rank_max}})
    set_number(record, std::string("throughput.") + key, rate, "");
  explain_nulls(record, "throughput.ci95",
                "fewer than 30 effective samples: measure more " + counted + " (--num_batches)");
}

void fill_facts(Json& record, const RunFacts& facts) {
  record["precision_native"] = facts.precision_native;
  if (facts.device != "cuda")
    set_unavailable(record, "proven_on", "computed on the CPU, where every test runs");
  else if (kProvenOn.empty())
    set_unavailable(record, "proven_on",
                    "no GPU has run this program's tests yet: see docs/gpu.md");
  else
    record["proven_on"] = kProvenOn;
  record["device"] = facts.device;
  record["device_name"] = facts.device_name;
  record["parameters"] = facts.parameters;
  if (!facts.allocator.empty()) record["allocator"] = facts.allocator;
  if (!facts.started_at.empty()) record["started_at"] = facts.started_at;
}

void fill_steps(Json& record, const RunMetrics& metrics, const std::string& reason) {
  record["steps"] = metrics.step_seconds.size();
  if (metrics.step_seconds.empty()) return set_unavailable(record, "step_seconds", reason);
  record["step_seconds"] = Json::object();
  set_number(record, "step_seconds.mean",
             metrics.wall_seconds > 0 ? std::optional(metrics.mean_step) : std::nullopt,
             "the loop did not reach its closing synchronised point");
  for (const auto& [key, q] : {std::pair{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}})
    set_number(record, std::string("step_seconds.") + key, quantile(metrics.step_seconds, q), "");
  record["step_seconds"]["samples"] = metrics.step_seconds;
}

void fill_compute(Json& record, const RunFacts& facts, const RunMetrics& metrics) {
  const bool known = facts.flops_per_sample > 0;
  const bool ok = record["status"] == "ok";
  const std::string unknown = "the catalog states no FLOPs for this model and image size";
  const std::string why = known ? "the run has no valid throughput" : unknown;
  set_number(record, "flops_per_sample",
             known ? std::optional(facts.flops_per_sample) : std::nullopt, unknown);
  std::optional<double> achieved, fraction;
  if (known && ok)
    achieved = facts.flops_per_sample * static_cast<double>(facts.batch.global_batch_size) /
               metrics.mean_step;
  set_number(record, "achieved_flops", achieved, why);
  record["roofline"] = Json::object();
  const auto roof = facts.gemm_flops.value_or(0) > 0 ? facts.gemm_flops : std::nullopt;
  set_number(record, "roofline.gemm_flops", roof, "the GEMM rate was not measured in this run");
  if (achieved && roof) fraction = *achieved / *roof;
  set_number(record, "roofline.fraction", fraction,
             achieved ? "the GEMM rate was not measured in this run" : why);
}

}  // namespace scalemark
