// See history.hpp.
#include "analysis/compare/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/compare/set_summary.hpp"
#include "error.hpp"
#include "measure/permutation.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

struct Division {
  std::size_t first = 0;  ///< of the second part
  double size = 0;
};

Division largest_division(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double total = mean(values) * n;
  Division largest;
  double before = 0;
  for (std::size_t i = 1; i + kLeastSegment <= values.size(); ++i) {
    before += values[i - 1];
    if (i < kLeastSegment) continue;
    const auto k = static_cast<double>(i);
    const double size =
        std::sqrt(k * (n - k) / n) * std::abs((total - before) / (n - k) - before / k);
    if (size > largest.size) largest = {i, size};
  }
  return largest;
}

double p_of(std::span<const double> values, const Division& found, std::mt19937_64& random) {
  std::vector<double> order(values.begin(), values.end());
  int as_large = 1;  // the order that was seen is one of them
  for (int draw = 0; draw < kDrawnAssignments; ++draw) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    as_large += largest_division(order).size >= found.size * (1 - 1e-12);
  }
  return as_large / (1. + kDrawnAssignments);
}

void search(std::span<const double> values, std::size_t offset, double alpha,
            std::mt19937_64& random, std::vector<ChangePoint>& changes) {
  if (values.size() < 2 * kLeastSegment) return;
  const Division found = largest_division(values);
  if (found.size == 0) return;
  const double p = p_of(values, found, random);
  if (p > alpha) return;
  search(values.first(found.first), offset, alpha, random, changes);
  changes.push_back({offset + found.first, p});
  search(values.subspan(found.first), offset + found.first, alpha, random, changes);
}

double level_of(const std::vector<const MatchedPoint*>& points, std::size_t set) {
  std::vector<double> means;
  for (const MatchedPoint* point : points) {
    std::vector<double> logs;
    for (const MeasuredLaunch* launch : point->launches[set])
      for (const Work& work : launch->repeats) logs.push_back(std::log(work.rate()));
    means.push_back(mean(logs));
  }
  return mean(means);
}

/// Of each change: the mean of the level after it against that before.
std::vector<double> percent_of(const History& history) {
  std::vector<double> percent;
  const auto& levels = history.levels;
  for (std::size_t i = 0; i < history.changes.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : history.changes[i - 1].first;
    const std::size_t middle = history.changes[i].first;
    const std::size_t end =
        i + 1 < history.changes.size() ? history.changes[i + 1].first : levels.size();
    const auto part = std::span(levels);
    percent.push_back(100 * std::expm1(mean(part.subspan(middle, end - middle)) -
                                       mean(part.subspan(begin, middle - begin))));
  }
  return percent;
}

}  // namespace

std::vector<ChangePoint> find_changes(std::span<const double> values, double alpha,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ChangePoint> changes;
  search(values, 0, alpha, random, changes);
  return changes;
}

History find_history(const std::vector<ResultSet>& sets, const Matching& matching, double alpha) {
  if (sets.size() < 2 * kLeastSegment)
    throw ConfigError(
        fmt::format("--history: {} sets in a row show no change of level; give {} or more",
                    sets.size(), 2 * kLeastSegment));
  std::vector<const MatchedPoint*> common;
  for (const MatchedPoint& point : matching.points)
    if (std::ranges::none_of(point.launches, [](const auto& launches) { return launches.empty(); }))
      common.push_back(&point);
  if (common.empty()) throw ConfigError("--history: no point is common to all sets");
  History history;
  history.points = common.size();
  for (std::size_t set = 0; set < sets.size(); ++set) {
    history.levels.push_back(level_of(common, set));
    history.rates.push_back(std::exp(history.levels.back() - history.levels.front()));
  }
  history.changes = find_changes(history.levels, alpha);
  history.percent = percent_of(history);
  return history;
}

Json make_history_record(const std::vector<ResultSet>& sets, const History& history, double alpha,
                         const std::vector<std::string>& notes,
                         const std::vector<std::string>& warnings) {
  Json record = envelope("history", Status::ok);
  record["alpha"] = alpha;
  record["points"] = history.points;
  record["sets"] = Json::array();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    record["sets"].push_back(set_json(sets[i]));
    record["sets"].back()["relative_rate"] = history.rates[i];
  }
  record["changes"] = Json::array();
  for (std::size_t i = 0; i < history.changes.size(); ++i)
    record["changes"].push_back({{"after", sets[history.changes[i].first - 1].label},
                                 {"at", sets[history.changes[i].first].label},
                                 {"change_percent", history.percent[i]},
                                 {"p", history.changes[i].p}});
  record["notes"] = notes;
  record["warnings"] = warnings;
  record["unavailable"] = Json::object();
  return record;
}

}  // namespace scalemark
