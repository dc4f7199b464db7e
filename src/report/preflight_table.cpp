// What `preflight` tells a person: the numbers of every rank, of hosts beside each other, and the
// checks.
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
  double worst = 1;  ///< of its fractions of the median; where less is better, of the inverse
  std::array<std::string, kFleetColumns.size()> cells;
};

/// By host, the worst of its ranks.
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

std::vector<FleetRow> fleet_rows(const Json& record) {
  std::map<std::string, FleetRow> rows;
  for (const Json& host : record.at("hosts")) rows[host.at("host")].host = host["host"];
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

std::string fleet_table(const Json& record) {
  if (record.at("hosts").size() < 2) return "";
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

std::string text(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string ranks_table(const Json& record) {
  Rows rows{{"rank", "host", "cpus", "GFLOP/s fp64", "fp32", "bf16", "fp16", "triad", "quantum",
             "p99", "max/min"}};
  for (const Json& rank : record.at("ranks")) {
    std::vector<std::string> row{text(rank.at("rank")), text(rank.at("host")),
                                 text(rank.at("cpus"))};
    for (const char* precision : {"fp64", "fp32", "bf16", "fp16"})
      row.push_back(four_digits(rank.at("gemm").at(precision).at("flops").get<double>() / 1e9));
    const Json& quantum = rank.at("noise_quantum");
    row.push_back(shown_value(rank.at("memory_bandwidth").at("bytes_per_second"), "bytes/s"));
    row.push_back(shown_value(quantum.at("best_mean_seconds"), "s"));
    row.push_back(shown_value(quantum.at("p99_seconds"), "s"));
    row.push_back(shown_value(quantum.at("max_over_min"), ""));
    rows.push_back(std::move(row));
  }
  return text_table(rows);
}

std::string hosts_table(const Json& record) {
  Rows rows{{"host", "memory free", "governor", "SMT", "scratch write", "read", "interfaces"}};
  for (const Json& host : record.at("hosts")) {
    std::string nics;
    for (const Json& nic : host.at("nics"))
      nics +=
          fmt::format("{}{} {}", nics.empty() ? "" : ", ", text(nic.at("name")),
                      nic.at("speed_mbps").is_null() ? "?" : nic["speed_mbps"].dump() + " Mbit/s");
    for (const Json& port : host.at("fabric"))
      nics += fmt::format("{}{} {}", nics.empty() ? "" : ", ", text(port.at("name")),
                          port.at("gigabits_per_second").is_null()
                              ? text(port.at("state"))
                              : port["gigabits_per_second"].dump() + " Gbit/s");
    const Json& scratch = host.at("scratch");
    rows.push_back({text(host.at("host")), shown_value(host.at("memory_available_bytes"), "bytes"),
                    text(host.at("governor")), text(host.at("smt")),
                    shown_value(scratch.at("write_bytes_per_second"), "bytes/s"),
                    shown_value(scratch.at("read_bytes_per_second"), "bytes/s"),
                    nics.empty() ? "-" : nics});
  }
  return text_table(rows);
}

/// "1980/1980 MHz", "- MHz".
std::string clock_text(const Json& gpu) {
  return fmt::format("{}/{} MHz", text(gpu.at("sm_mhz")), text(gpu.at("sm_max_mhz")));
}

/// The least of all copies in this direction.
std::string slowest_copy(const Json& gpu, const char* way) {
  Json least;
  for (const Json& copy : gpu.at("copies"))
    if (least.is_null() || copy.at(way) < least) least = copy[way];
  return shown_value(least, "bytes/s");
}

/// Empty without GPUs.
std::string gpus_table(const Json& record) {
  Rows rows{{"rank", "host", "GPU", "SM clock/most", "slowed by", "memory free", "ECC uncorrected",
             "XIDs", "NVLinks", "to GPU", "from GPU"}};
  for (const Json& rank : record.at("ranks")) {
    const Json& gpu = rank.at("gpu_health");
    if (gpu.is_null()) continue;
    const Json &slowed = gpu.at("slowdowns"), &links = gpu.at("nvlinks");
    rows.push_back({text(rank.at("rank")), text(rank.at("host")), text(rank.at("gpu")),
                    clock_text(gpu), slowed.is_array() && slowed.empty() ? "nothing" : text(slowed),
                    shown_value(gpu.at("memory_free_bytes"), "bytes"),
                    text(gpu.at("ecc").at("uncorrected")), text(gpu.at("xids").at("events")),
                    text(links.at("active")), slowest_copy(gpu, "to_device_bytes_per_second"),
                    slowest_copy(gpu, "from_device_bytes_per_second")});
  }
  return rows.size() == 1 ? "" : "\n" + text_table(rows);
}

/// GPU to GPU, GB/s, a row for each that sends; "*": through the host. Empty without peers.
std::string peers_table(const Json& host) {
  const Json& links = host.at("gpu_peers");
  if (links.is_null() || links.empty()) return "";
  std::map<int, std::map<int, std::string>> cells;
  for (const Json& link : links)
    cells[link.at("from")][link.at("to")] =
        fmt::format("{:.1f}{}", link.at("bytes_per_second").get<double>() / 1e9,
                    link.at("can_access") == true ? "" : "*");
  Rows rows(1, {"GB/s from"});
  for (const auto& [gpu, ignored] : cells) rows[0].push_back(fmt::format("to {}", gpu));
  for (const auto& [from, to] : cells) {
    rows.push_back({std::to_string(from)});
    for (const auto& [gpu, ignored] : cells)
      rows.back().push_back(to.contains(gpu) ? to.at(gpu) : "-");
  }
  return fmt::format("\nGPUs of {} (*: through the host)\n{}", text(host.at("host")),
                     text_table(rows));
}

std::string collectives_table(const Json& collectives) {
  if (collectives.is_null()) return "";
  Rows rows{{"collective", "by", "bytes", "time", "algbw GB/s", "busbw GB/s", "scalemark/MPI"}};
  std::map<std::int64_t, double> ratios;
  for (const Json& ratio : collectives.at("allreduce_ratio"))
    ratios[ratio.at("bytes")] = ratio.at("scalemark_over_mpi");
  for (const Json& row : collectives.at("rows")) {
    const bool own = row.at("carrier") == "scalemark";
    rows.push_back({text(row.at("collective")), text(row.at("carrier")), row.at("bytes").dump(),
                    shown_value(row.at("seconds"), "s"),
                    fmt::format("{:.3f}", row.at("algbw").get<double>() / 1e9),
                    fmt::format("{:.3f}", row.at("busbw").get<double>() / 1e9),
                    own ? fmt::format("{:.2f}", ratios[row.at("bytes")]) : "-"});
  }
  return fmt::format("\ntransport: {}\n{}", text(collectives.at("transport")), text_table(rows));
}

/// One line a check; those that passed in short.
std::string checks_list(const Json& record) {
  std::string lines;
  std::map<std::string, int> count;
  for (const Json& check : record.at("checks")) {
    const std::string status = check.at("status");
    ++count[status];
    if (status == "pass") continue;
    lines += fmt::format("{}: {} {}: {}\n", status, text(check.at("name")),
                         text(check.at("statistic")), text(check.at("message")));
  }
  return fmt::format("\n{}verdict: {} ({} passed, {} warned, {} failed, {} skipped)\n", lines,
                     text(record.at("verdict")), count["pass"], count["warn"], count["fail"],
                     count["skip"]);
}

/// "1, 2" of [1,2]; empty of null.
std::string numbers_text(const Json& numbers, std::string_view separator) {
  if (numbers.is_null()) return "";
  return fmt::format("{}", fmt::join(numbers.get<std::vector<int>>(), separator));
}

std::string binding_text(const Json& rank) {
  const Json& binding = rank.at("binding");
  std::vector<std::string> words;
  if (const auto others = numbers_text(binding.at("overlaps_with"), ", "); !others.empty())
    words.push_back("shares cores with rank " + others);
  if (binding.at("as_asked") == false) words.push_back("not bound");
  if (binding.at("near_gpu") == false) words.push_back("far from its GPU");
  if (binding.at("crosses_numa") == true)
    words.push_back("crosses NUMA " + numbers_text(rank.at("numa"), ", "));
  if (!words.empty()) return fmt::format("{}", fmt::join(words, "; "));
  return binding.at("as_asked").is_null() ? "-" : "as asked";
}

}  // namespace

std::string preflight_table(const Json& record) {
  std::string tables = ranks_table(record) + "\n" + hosts_table(record) + gpus_table(record);
  for (const Json& host : record.at("hosts")) tables += peers_table(host);
  return tables + collectives_table(record.at("collectives")) + fleet_table(record) +
         checks_list(record);
}

std::string pinning_table(const Json& record) {
  Rows rows{{"rank", "host", "cores", "NUMA", "threads", "GPU", "asked for", "achieved"}};
  for (const Json& rank : record.at("ranks")) {
    const std::string numa = numbers_text(rank.at("numa"), ",");
    rows.push_back({text(rank.at("rank")), text(rank.at("host")), text(rank.at("cpus")),
                    numa.empty() ? "-" : numa, text(rank.at("threads")), text(rank.at("gpu")),
                    text(rank.at("affinity_requested")), binding_text(rank)});
  }
  return text_table(rows) + checks_list(record);
}

}  // namespace scalemark
