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

/// Returns the share of time that checkpoints of `write` seconds take every `interval` steps of
/// `step` seconds.
double overhead(std::int64_t interval, double step, double write) {
  return write / (static_cast<double>(interval) * step + write);
}

std::vector<record::ProjectedCheckpoint> projected(double bytes, double measured_rate,
                                                   double step) {
  std::vector<double> rates{measured_rate};
  rates.insert(rates.end(), kStorageRates.begin(), kStorageRates.end());
  std::vector<record::ProjectedCheckpoint> rows;
  for (const double rate : rates)
    for (const std::int64_t interval : kIntervals)
      rows.push_back({rate, interval, overhead(interval, step, bytes / rate)});
  return rows;
}

/// On the file system that --storage_gbit speaks of, which all nodes share.
Known<record::Storage> storage_of(const ResolvedConfig& config, const Writers& writers,
                                  double step) {
  if (!config.storage_gbit) return Unknown{"--storage_gbit was not given"};
  record::Storage storage;
  storage.bytes_per_second = *config.storage_gbit * kBytesPerGbit;
  if (config.storage_node_gbit)
    storage.node_bytes_per_second = *config.storage_node_gbit * kBytesPerGbit;
  storage.seconds = writers.all.bytes / storage.bytes_per_second;
  storage.limited_by = "file system";
  for (const auto& [host, files] : writers.hosts) {
    const double own =
        storage.node_bytes_per_second ? files.bytes / *storage.node_bytes_per_second : 0;
    if (own > storage.seconds) storage.limited_by = "node";
    storage.seconds = std::max(storage.seconds, own);
  }
  storage.overhead_fraction = overhead(writers.every, step, storage.seconds);
  return storage;
}

void set_write_rates(record::Checkpoint& checkpoint, const Writers& writers) {
  checkpoint.bytes = static_cast<std::int64_t>(writers.all.bytes / writers.all.count);
  checkpoint.bytes_per_second = writers.all.rate() / writers.all.count;
  checkpoint.total_bytes = static_cast<std::int64_t>(writers.all.bytes);
  checkpoint.total_bytes_per_second = writers.all.rate();
  const auto [slowest, fastest] = std::ranges::minmax(writers.file_rates);
  checkpoint.file_bytes_per_second = record::FileRates{mean(writers.file_rates), slowest, fastest};
  std::vector<record::NodeFiles> nodes;
  for (const auto& [host, files] : writers.hosts)
    nodes.push_back({host, files.count, files.rate()});
  checkpoint.nodes = std::move(nodes);
}

/// Sets the reasons where there was no checkpoint in the measured steps.
void set_unmeasured(record::Checkpoint& checkpoint) {
  const Unknown none{"no checkpoint fell into the measured steps, or they did not end"};
  checkpoint.bytes = none;
  checkpoint.write_seconds = none;
  checkpoint.bytes_per_second = none;
  checkpoint.step_overhead_fraction = none;
  checkpoint.projected = none;
  checkpoint.total_bytes = none;
  checkpoint.total_bytes_per_second = none;
  checkpoint.file_bytes_per_second = none;
  checkpoint.nodes = none;
  checkpoint.storage = none;
}

}  // namespace

Known<record::Checkpoint> checkpoint_of(const ResolvedConfig& config,
                                        const std::vector<RankReport>& reports,
                                        const RunMetrics& metrics) {
  const Writers writers(reports);
  if (writers.every == 0) return Unknown{"--checkpoint_every was not asked for"};
  const auto& seconds = writers.all.seconds;
  record::Checkpoint checkpoint;
  checkpoint.every = writers.every;
  checkpoint.writers =
      to_string(config.shard == Shard::none ? config.checkpoint_writers : CheckpointWriters::rank);
  checkpoint.files = writers.all.count;
  checkpoint.count = static_cast<std::int64_t>(seconds.size());
  const double total = writers.all.total_seconds();
  if (seconds.empty() || !(total > 0) || !(metrics.wall_seconds > total)) {
    set_unmeasured(checkpoint);
    return checkpoint;
  }
  const double step =
      (metrics.wall_seconds - total) / static_cast<double>(metrics.step_seconds.size());
  set_write_rates(checkpoint, writers);
  checkpoint.write_seconds = record::WriteSeconds{mean(seconds), std::ranges::max(seconds)};
  checkpoint.step_overhead_fraction = total / metrics.wall_seconds;
  checkpoint.projected = projected(writers.all.bytes, writers.all.rate(), step);
  checkpoint.storage = storage_of(config, writers, step);
  return checkpoint;
}

}  // namespace scalemark
