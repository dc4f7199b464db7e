// The parts of a run record that speak of what is around the step: how the batch was found, where
// it comes from, and checkpoints.
#include <algorithm>
#include <array>
#include <numeric>

#include "config/names.hpp"
#include "measure/statistics.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// What file systems take, bytes per second: a network share, a local disk, a parallel file system.
constexpr std::array kStorageRates{0.2e9, 1e9, 8e9};
constexpr std::array<std::int64_t, 4> kIntervals{10, 100, 1000, 10000};

/// Of steps of `step` seconds with a checkpoint of `write` seconds every `interval` of them.
double overhead(std::int64_t interval, double step, double write) {
  return write / (static_cast<double>(interval) * step + write);
}

Json projected(double bytes, double measured_rate, double step) {
  std::vector<double> rates{measured_rate};
  rates.insert(rates.end(), kStorageRates.begin(), kStorageRates.end());
  Json rows = Json::array();
  for (const double rate : rates)
    for (const std::int64_t interval : kIntervals)
      rows.push_back({{"storage_bytes_per_second", rate},
                      {"interval_steps", interval},
                      {"overhead_fraction", overhead(interval, step, bytes / rate)}});
  return rows;
}

}  // namespace

void fill_batch_search(Json& record, const std::optional<BatchSearch>& search) {
  if (!search)
    return set_unavailable(record, "batch_size_search", "--batch_size max was not asked for");
  record["batch_size_search"] = to_json(*search);
  if (!search->limit_bytes)
    set_unavailable(record, "batch_size_search.limit_bytes",
                    "neither the host nor the device tells how much memory is left");
}

void fill_input(Json& record, const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const double steps = static_cast<double>(metrics.step_seconds.size());
  if (reports.empty() || steps == 0)
    return set_unavailable(record, "input", "no step was completed");
  double copy = 0, wait = 0;  // means over ranks
  for (const RankReport& report : reports) {
    copy += report.samples.input.copy_seconds / static_cast<double>(reports.size());
    wait += report.samples.input.wait_seconds / static_cast<double>(reports.size());
  }
  const InputSamples& input = reports.front().samples.input;
  record["input"] = {{"place", to_string(input.place)}, {"bytes_per_step", input.bytes_per_step}};
  set_number(record, "input.copy_seconds", copy / steps, "");
  set_number(record, "input.wait_seconds", wait / steps, "");
}

void fill_checkpoint(Json& record, const std::vector<RankReport>& reports,
                     const RunMetrics& metrics) {
  const CheckpointSamples samples =
      reports.empty() ? CheckpointSamples{} : reports.front().samples.checkpoints;
  if (samples.every == 0)
    return set_unavailable(record, "checkpoint", "--checkpoint_every was not asked for");
  const auto& seconds = samples.write_seconds;
  record["checkpoint"] = {{"every", samples.every}, {"bytes", nullptr}, {"count", seconds.size()}};
  Json& checkpoint = record["checkpoint"];
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.);
  if (seconds.empty() || !(total > 0) || !(metrics.wall_seconds > total)) {
    for (const char* key :
         {"bytes", "write_seconds", "bytes_per_second", "step_overhead_fraction", "projected"})
      set_unavailable(record, std::string("checkpoint.") + key,
                      "no checkpoint fell into the measured steps, or they did not end");
    return;
  }
  const auto bytes = static_cast<double>(samples.bytes);
  const double rate = bytes * static_cast<double>(seconds.size()) / total;
  const double step =
      (metrics.wall_seconds - total) / static_cast<double>(metrics.step_seconds.size());
  checkpoint["bytes"] = samples.bytes;
  checkpoint["write_seconds"] = {{"mean", mean(seconds)}, {"max", std::ranges::max(seconds)}};
  checkpoint["bytes_per_second"] = rate;
  checkpoint["step_overhead_fraction"] = total / metrics.wall_seconds;
  checkpoint["projected"] = projected(bytes, rate, step);
}

}  // namespace scalemark
