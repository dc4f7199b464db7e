// Prints what the record of `preflight` says, for people: the numbers of every rank, of hosts
// beside each other, and the checks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "analysis/preflight/values.hpp"
#include "measure/statistics.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostHosts = 30;

struct FleetColumn {
  const char* title;
  const char* check;
  const char* statistic;
};
constexpr std::array kFleetColumns{FleetColumn{"fp32", "gemm.fp32", "flops"},
                                   FleetColumn{"bf16", "gemm.bf16", "flops"},
                                   FleetColumn{"triad", "memory_bandwidth", "bytes_per_second"},
                                   FleetColumn{"quantum", "noise_quantum", "best_mean_seconds"},
                                   FleetColumn{"pair", "pair.host", "bytes_per_second"},
                                   FleetColumn{"latency", "pair.host", "latency_seconds"}};

struct FleetRow {
  std::string host;
  double worst = 1;  ///< the worst fraction of the median, or its inverse where less is better
  std::array<std::string, kFleetColumns.size()> cells;
};

/// Returns the worst value of each host's ranks, by host.
std::map<std::string, PreflightValue> worst_by_host(const std::vector<PreflightValue>& values,
                                                    const FleetColumn& column) {
  std::map<std::string, PreflightValue> worst;
  for (const PreflightValue& value : values) {
    if (value.check != column.check || value.statistic != column.statistic) continue;
    if (!value.value.is_number()) continue;
    const auto [known, first] = worst.try_emplace(value.host, value);
    const bool worse = value.higher_is_better ? value.value < known->second.value
                                              : value.value > known->second.value;
    if (!first && worse) known->second = value;
  }
  return worst;
}

std::vector<FleetRow> fleet_rows(const PreflightResult& record) {
  std::map<std::string, FleetRow> rows;
  for (const record::CheckedHost& host : record.hosts) rows[host.host].host = host.host;
  const std::vector<PreflightValue> values = preflight_values(record);
  for (std::size_t i = 0; i < kFleetColumns.size(); ++i) {
    const auto by_host = worst_by_host(values, kFleetColumns[i]);
    std::vector<double> numbers;
    for (const auto& [host, value] : by_host) numbers.push_back(value.value);
    if (numbers.empty()) continue;
    const double middle = median(numbers);
    for (const auto& [host, value] : by_host) {
      const double fraction = value.value.get<double>() / middle;
      FleetRow& row = rows[host];
      row.worst = std::min(row.worst, value.higher_is_better ? fraction : 1 / fraction);
      row.cells[i] = fmt::format("{} ({:.2f})", shown_value(value.value, value.unit), fraction);
    }
  }
  std::vector<FleetRow> sorted;
  for (auto& [host, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, {}, &FleetRow::worst);
  return sorted;
}

}  // namespace

std::string fleet_table(const PreflightResult& record) {
  if (record.hosts.size() < 2) return "";
  std::vector<std::vector<std::string>> table{{"host"}};
  for (const FleetColumn& column : kFleetColumns) table[0].push_back(column.title);
  const std::vector<FleetRow> rows = fleet_rows(record);
  for (const FleetRow& row : rows) {
    if (table.size() > kMostHosts) break;
    table.push_back({row.host});
    for (const std::string& cell : row.cells) table.back().push_back(cell.empty() ? "-" : cell);
  }
  const std::string more =
      rows.size() > kMostHosts
          ? fmt::format("and {} hosts nearer to the median\n", rows.size() - kMostHosts)
          : "";
  return fmt::format("\nhosts, the one furthest behind first (fraction of the median host)\n{}{}",
                     text_table(table), more);
}

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string text(const std::string& words) { return words; }
std::string text(const Json& value) { return value.dump(); }
template <typename T>
std::string text(const Known<T>& value) {
  return value ? text(*value) : "-";
}

std::string bytes_text(const Known<std::int64_t>& bytes) {
  return shown_value(bytes ? Json(*bytes) : Json(nullptr), "bytes");
}

std::vector<std::string> rank_row(const record::CheckedRank& rank) {
  std::vector<std::string> row{text(rank.rank), rank.host, text(rank.cpus)};
  for (const auto& rate : {rank.gemm->fp64, rank.gemm->fp32, rank.gemm->bf16, rank.gemm->fp16})
    row.push_back(four_digits(rate.flops / 1e9));
  const record::NoiseQuantum& quantum = *rank.noise_quantum;
  row.push_back(shown_value(rank.memory_bandwidth->bytes_per_second, "bytes/s"));
  row.push_back(shown_value(quantum.best_mean_seconds, "s"));
  row.push_back(shown_value(quantum.p99_seconds, "s"));
  row.push_back(shown_value(quantum.max_over_min, ""));
  return row;
}

/// Returns a table of the ranks that measured.
std::string ranks_table(const PreflightResult& record) {
  Rows rows{{"rank", "host", "cpus", "GFLOP/s fp64", "fp32", "bf16", "fp16", "triad", "quantum",
             "p99", "max/min"}};
  for (const record::CheckedRank& rank : record.ranks) rows.push_back(rank_row(rank));
  return text_table(rows);
}

std::string links_text(const record::CheckedHost& host) {
  std::vector<std::string> links;
  for (const auto& [name, speed] : host.nics)
    links.push_back(fmt::format("{} {}", name, speed ? text(*speed) + " Mbit/s" : "?"));
  for (const auto& [name, state, rate] : host.fabric)
    links.push_back(fmt::format("{} {}", name, rate ? text(*rate) + " Gbit/s" : text(state)));
  return links.empty() ? "-" : fmt::format("{}", fmt::join(links, ", "));
}

std::string hosts_table(const PreflightResult& record) {
  Rows rows{{"host", "memory free", "governor", "SMT", "scratch write", "read", "interfaces"}};
  for (const record::CheckedHost& host : record.hosts)
    rows.push_back({host.host, bytes_text(host.memory_available_bytes), text(host.governor),
                    text(host.smt), shown_value(host.scratch->write_bytes_per_second, "bytes/s"),
                    shown_value(host.scratch->read_bytes_per_second, "bytes/s"), links_text(host)});
  return text_table(rows);
}

/// Returns the lowest rate of all copies in this direction.
std::string slowest_copy(const record::GpuHealth& gpu, double GpuCopy::*way) {
  if (gpu.copies.empty()) return shown_value(nullptr, "bytes/s");
  return shown_value((*std::ranges::min_element(gpu.copies, {}, way)).*way, "bytes/s");
}

/// Returns a table of the GPUs, or an empty text without GPUs.
std::string gpus_table(const PreflightResult& record) {
  Rows rows{{"rank", "host", "GPU", "SM clock/most", "slowed by", "memory free", "ECC uncorrected",
             "XIDs", "NVLinks", "to GPU", "from GPU"}};
  for (const record::CheckedRank& rank : record.ranks) {
    if (!rank.gpu_health) continue;
    const record::GpuHealth& gpu = *rank.gpu_health;
    const bool steady = gpu.slowdowns && gpu.slowdowns->empty();
    rows.push_back({text(rank.rank), rank.host, text(rank.gpu),
                    fmt::format("{}/{} MHz", text(gpu.sm_mhz), text(gpu.sm_max_mhz)),
                    steady ? "nothing" : text(gpu.slowdowns), bytes_text(gpu.memory_free_bytes),
                    text(gpu.ecc.uncorrected), text(gpu.xids.events), text(gpu.nvlinks.active),
                    slowest_copy(gpu, &GpuCopy::to_device),
                    slowest_copy(gpu, &GpuCopy::from_device)});
  }
  return rows.size() == 1 ? "" : "\n" + text_table(rows);
}

/// Returns the rates from GPU to GPU in GB/s, with a row for each sender. A "*" marks copies
/// through the host. The text is empty without peers.
std::string peers_table(const record::CheckedHost& host) {
  if (!host.gpu_peers || host.gpu_peers->empty()) return "";
  std::map<int, std::map<int, std::string>> cells;
  for (const PeerLink& link : *host.gpu_peers)
    cells[link.from][link.to] =
        fmt::format("{:.1f}{}", link.bytes_per_second / 1e9, link.can_access ? "" : "*");
  Rows rows(1, {"GB/s from"});
  for (const auto& [gpu, ignored] : cells) rows[0].push_back(fmt::format("to {}", gpu));
  for (const auto& [from, to] : cells) {
    rows.push_back({std::to_string(from)});
    for (const auto& [gpu, ignored] : cells)
      rows.back().push_back(to.contains(gpu) ? to.at(gpu) : "-");
  }
  return fmt::format("\nGPUs of {} (*: through the host)\n{}", host.host, text_table(rows));
}

std::string collectives_table(const Known<record::Collectives>& collectives) {
  if (!collectives) return "";
  Rows rows{{"collective", "by", "bytes", "time", "algbw GB/s", "busbw GB/s", "scalemark/MPI"}};
  std::map<std::int64_t, double> ratios;
  for (const auto& [bytes, ratio] : collectives->allreduce_ratio) ratios[bytes] = ratio;
  for (const record::CollectiveRow& row : collectives->rows)
    rows.push_back({row.collective, row.carrier, text(row.bytes), shown_value(row.seconds, "s"),
                    fmt::format("{:.3f}", row.algbw / 1e9), fmt::format("{:.3f}", row.busbw / 1e9),
                    row.carrier == "scalemark" ? fmt::format("{:.2f}", ratios[row.bytes]) : "-"});
  return fmt::format("\ntransport: {}\n{}", text(collectives->transport), text_table(rows));
}

/// Returns one line per check; lines of checks that passed are short.
std::string checks_list(const PreflightResult& record) {
  std::string lines;
  std::map<CheckStatus, int> count;
  for (const record::Check& check : record.checks) {
    ++count[check.status];
    if (check.status == CheckStatus::pass) continue;
    lines += fmt::format("{}: {} {}: {}\n", to_string(check.status), check.name, check.statistic,
                         check.message);
  }
  return fmt::format("\n{}verdict: {} ({} passed, {} warned, {} failed, {} skipped)\n", lines,
                     record.verdict ? to_string(*record.verdict) : "-", count[CheckStatus::pass],
                     count[CheckStatus::warn], count[CheckStatus::fail], count[CheckStatus::skip]);
}

std::string binding_text(const record::CheckedRank& rank) {
  const record::Binding& binding = rank.binding;
  std::vector<std::string> words;
  if (!binding.overlaps_with.empty())
    words.push_back(
        fmt::format("shares cores with rank {}", fmt::join(binding.overlaps_with, ", ")));
  if (binding.as_asked == false) words.push_back("not bound");
  if (binding.near_gpu == false) words.push_back("far from its GPU");
  if (binding.crosses_numa == true)
    words.push_back(fmt::format("crosses NUMA {}", fmt::join(rank.numa.value_or({}), ", ")));
  if (!words.empty()) return fmt::format("{}", fmt::join(words, "; "));
  return binding.as_asked ? "as asked" : "-";
}

}  // namespace

std::string preflight_table(const PreflightResult& record) {
  std::string tables = ranks_table(record) + "\n" + hosts_table(record) + gpus_table(record);
  for (const record::CheckedHost& host : record.hosts) tables += peers_table(host);
  return tables + collectives_table(record.collectives) + fleet_table(record) + checks_list(record);
}

std::string pinning_table(const PreflightResult& record) {
  Rows rows{{"rank", "host", "cores", "NUMA", "threads", "GPU", "asked for", "achieved"}};
  for (const record::CheckedRank& rank : record.ranks)
    rows.push_back({text(rank.rank), rank.host, text(rank.cpus),
                    rank.numa ? fmt::format("{}", fmt::join(*rank.numa, ",")) : "-",
                    text(rank.threads), text(rank.gpu), text(rank.affinity_requested),
                    binding_text(rank)});
  return text_table(rows) + checks_list(record);
}

}  // namespace scalemark
