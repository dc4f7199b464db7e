// The part of a run record that says what checkpoints cost: measured, and on other storage.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "config/names.hpp"
#include "measure/statistics.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// What file systems take, bytes per second: a network share, a local disk, a parallel file system.
constexpr std::array kStorageRates{0.2e9, 1e9, 8e9};
constexpr std::array<std::int64_t, 4> kIntervals{10, 100, 1000, 10000};
constexpr double kBytesPerGbit = 1e9 / 8;

/// Files that are written at a time, from one place or from all.
struct Files {
  int count = 0;
  double bytes = 0;                  ///< of all together
  std::vector<double> seconds = {};  ///< [checkpoints]: of the slowest file

  void add(const CheckpointSamples& file) {
    ++count;
    bytes += static_cast<double>(file.bytes);
    seconds.resize(file.write_seconds.size());
    for (std::size_t i = 0; i < seconds.size(); ++i)
      seconds[i] = std::max(seconds[i], file.write_seconds[i]);
  }
  double total_seconds() const { return std::accumulate(seconds.begin(), seconds.end(), 0.); }
  double rate() const { return bytes * static_cast<double>(seconds.size()) / total_seconds(); }
};

/// All files, those of each host in the order of ranks, and the write rate of each file.
struct Writers {
  std::int64_t every = 0;  ///< 0: none writes
  Files all;
  std::vector<std::pair<std::string, Files>> hosts;
  std::vector<double> file_rates;

  explicit Writers(const std::vector<RankReport>& reports) {
    for (const RankReport& report : reports) {
      const CheckpointSamples& file = report.samples.checkpoints;
      if (file.every == 0) continue;
      every = file.every;
      auto host = std::ranges::find(hosts, report.host, &std::pair<std::string, Files>::first);
      if (host == hosts.end()) host = hosts.insert(host, {report.host, {}});
      host->second.add(file);
      all.add(file);
      Files alone;
      alone.add(file);
      file_rates.push_back(alone.rate());
    }
  }
};

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

/// On the file system that --storage_gbit speaks of, which all nodes share.
void fill_storage(Json& record, const ResolvedConfig& config, const Writers& writers, double step) {
  if (!config.storage_gbit)
    return set_unavailable(record, "checkpoint.storage", "--storage_gbit was not given");
  const double rate = *config.storage_gbit * kBytesPerGbit;
  double seconds = writers.all.bytes / rate;
  std::string limit = "file system";
  for (const auto& [host, files] : writers.hosts) {
    const double own =
        config.storage_node_gbit ? files.bytes / (*config.storage_node_gbit * kBytesPerGbit) : 0;
    if (own > seconds) limit = "node";
    seconds = std::max(seconds, own);
  }
  record["checkpoint"]["storage"] = {{"bytes_per_second", rate},
                                     {"node_bytes_per_second", nullptr},
                                     {"limited_by", limit},
                                     {"seconds", seconds},
                                     {"overhead_fraction", overhead(writers.every, step, seconds)}};
  set_number(record, "checkpoint.storage.node_bytes_per_second",
             config.storage_node_gbit ? std::optional(*config.storage_node_gbit * kBytesPerGbit)
                                      : std::nullopt,
             "--storage_node_gbit was not given");
}

void fill_write_rates(Json& checkpoint, const Writers& writers) {
  checkpoint["total_bytes"] = static_cast<std::int64_t>(writers.all.bytes);
  checkpoint["total_bytes_per_second"] = writers.all.rate();
  const auto [slowest, fastest] = std::ranges::minmax(writers.file_rates);
  checkpoint["file_bytes_per_second"] = {
      {"mean", mean(writers.file_rates)}, {"min", slowest}, {"max", fastest}};
  checkpoint["nodes"] = Json::array();
  for (const auto& [host, files] : writers.hosts)
    checkpoint["nodes"].push_back(
        {{"host", host}, {"files", files.count}, {"bytes_per_second", files.rate()}});
}

}  // namespace

void fill_checkpoint(Json& record, const ResolvedConfig& config,
                     const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const Writers writers(reports);
  if (writers.every == 0)
    return set_unavailable(record, "checkpoint", "--checkpoint_every was not asked for");
  const auto& seconds = writers.all.seconds;
  record["checkpoint"] = {{"every", writers.every},
                          {"writers", to_string(config.checkpoint_writers)},
                          {"files", writers.all.count},
                          {"bytes", nullptr},
                          {"count", seconds.size()}};
  Json& checkpoint = record["checkpoint"];
  const double total = writers.all.total_seconds();
  if (seconds.empty() || !(total > 0) || !(metrics.wall_seconds > total)) {
    for (const char* key :
         {"bytes", "write_seconds", "bytes_per_second", "step_overhead_fraction", "projected",
          "total_bytes", "total_bytes_per_second", "file_bytes_per_second", "nodes", "storage"})
      set_unavailable(record, std::string("checkpoint.") + key,
                      "no checkpoint fell into the measured steps, or they did not end");
    return;
  }
  const double step =
      (metrics.wall_seconds - total) / static_cast<double>(metrics.step_seconds.size());
  const double bytes = writers.all.bytes / writers.all.count;
  checkpoint["bytes"] = static_cast<std::int64_t>(bytes);
  checkpoint["write_seconds"] = {{"mean", mean(seconds)}, {"max", std::ranges::max(seconds)}};
  checkpoint["bytes_per_second"] = writers.all.rate() / writers.all.count;
  checkpoint["step_overhead_fraction"] = total / metrics.wall_seconds;
  checkpoint["projected"] = projected(writers.all.bytes, writers.all.rate(), step);
  fill_write_rates(checkpoint, writers);
  fill_storage(record, config, writers, step);
}

}  // namespace scalemark
