// See fleet_table.hpp.
#include "report/fleet_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "analysis/preflight/values.hpp"
#include "measure/statistics.hpp"
#include "report/text_table.hpp"

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

}  // namespace scalemark
