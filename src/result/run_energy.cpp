// The part of a run record that says what a sample costs in energy.
#include <algorithm>

#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

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

}  // namespace

void fill_energy(Json& record, const ResolvedConfig& config, const RunFacts& facts,
                 const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const auto host = sum_of(
      reports, [](const RankReport& r) { return r.energy_of_host; },
      [](const RankReport& r) { return r.energy.host_joules; });
  const auto gpu = sum_of(
      reports, [](const RankReport& r) { return !r.gpu_uuid.empty(); },
      [](const RankReport& r) { return r.energy.gpu_joules; });
  const bool on_gpus = facts.device == "cuda";
  const auto steps = static_cast<std::int64_t>(metrics.step_seconds.size());
  const double samples = static_cast<double>(facts.batch.global_batch_size *
                                             (steps > 0 ? config.num_warmup_batches + steps : 0));
  std::optional<double> joules;
  if (samples > 0 && (on_gpus ? gpu : host)) joules = host.value_or(0) + gpu.value_or(0);
  set_number(
      record, "energy.joules_per_sample",
      joules && *joules > 0 ? std::optional(*joules / samples) : std::nullopt,
      !joules ? why_not(reports, on_gpus) : "the counters did not move during the measurement");
  if (record["energy"]["joules_per_sample"].is_null())
    set_unavailable(record, "energy.source", "no energy was measured");
  else
    record["energy"]["source"] = !on_gpus ? "rapl" : host ? "nvml+rapl" : "nvml";
}

}  // namespace scalemark
