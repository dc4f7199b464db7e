// See history.hpp.
#include "analysis/compare/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/compare/compare.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"

namespace scalemark {
namespace {

/// Sizes of rows that SetsNeeded is looked for in.
constexpr std::size_t kRowSizes[] = {6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 30, 40};
/// How much of a dip may be left when it is over.
constexpr double kLeftOfDip = 0.25;
/// Of log rates: below lies rounding.
constexpr double kLeastVariance = 1e-18;

/// [point][set]: log rates of the launches; rounds within a launch are one value.
using LogRatesOfSets = std::vector<std::vector<std::vector<double>>>;

std::vector<double> log_rates(const std::vector<const MeasuredLaunch*>& launches) {
  std::vector<double> logs;
  for (const MeasuredLaunch* launch : launches) {
    std::vector<double> rounds;
    for (const Work& work : launch->repeats) rounds.push_back(std::log(work.rate()));
    logs.push_back(mean(rounds));
  }
  return logs;
}

/// Of the points that all sets have.
LogRatesOfSets common_log_rates(const Matching& matching) {
  LogRatesOfSets common;
  for (const MatchedPoint& point : matching.points) {
    if (std::ranges::any_of(point.launches, [](const auto& launches) { return launches.empty(); }))
      continue;
    auto& sets = common.emplace_back();
    for (const auto& launches : point.launches) sets.push_back(log_rates(launches));
  }
  return common;
}

double level_of(const LogRatesOfSets& points, std::size_t set) {
  std::vector<double> means;
  for (const auto& sets : points) means.push_back(mean(sets[set]));
  return mean(means);
}

/// The mean over sets of the variance that launches give a level, from the variance of a point's
/// launches, pooled over all sets.
std::optional<double> launch_variance(const LogRatesOfSets& points) {
  double variance = 0;
  for (const auto& sets : points) {
    double squares = 0, freedom = 0, shares = 0;
    for (const auto& logs : sets) {
      const auto n = static_cast<double>(logs.size());
      squares += (n - 1) * std::pow(standard_deviation(logs), 2);
      freedom += n - 1;
      shares += 1 / n;
    }
    if (freedom == 0) return std::nullopt;
    variance += squares / freedom * shares / static_cast<double>(sets.size());
  }
  const auto count = static_cast<double>(points.size());
  return variance / (count * count);
}

double part_mean(std::span<const double> values, std::size_t begin, std::size_t end) {
  return mean(values.subspan(begin, end - begin));
}

/// Whether the part from starts[k] on is a dip or peak: a few values that go back.
bool goes_back(std::span<const double> values, const std::vector<std::size_t>& starts,
               std::size_t k) {
  if (k + 2 >= starts.size() || starts[k + 1] - starts[k] > kMostDip) return false;
  const double before = part_mean(values, starts[k - 1], starts[k]);
  const double here = part_mean(values, starts[k], starts[k + 1]);
  const double after = part_mean(values, starts[k + 1], starts[k + 2]);
  return std::abs(after - before) <= kLeftOfDip * std::abs(here - before);
}

/// `firsts`: where levels begin.
std::vector<LevelChange> named_changes(std::span<const double> values,
                                       const std::vector<std::size_t>& firsts,
                                       double least_variance, ChangeTest& test) {
  std::vector<std::size_t> starts{0};
  starts.insert(starts.end(), firsts.begin(), firsts.end());
  starts.push_back(values.size());
  std::vector<LevelChange> changes;
  for (std::size_t k = 1; k + 1 < starts.size(); ++k) {
    LevelChange change;
    change.first = starts[k];
    change.end = starts[k + 1];
    const std::size_t begin = starts[k - 1];
    std::size_t end = change.end;
    const double here = part_mean(values, change.first, change.end);
    change.difference = here - part_mean(values, begin, change.first);
    if (goes_back(values, starts, k)) {
      change.kind = change.difference < 0 ? ChangeKind::dip : ChangeKind::peak;
      end = starts[k + 2];
      std::vector<double> around(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                 values.begin() + static_cast<std::ptrdiff_t>(change.first));
      around.insert(around.end(), values.begin() + static_cast<std::ptrdiff_t>(change.end),
                    values.begin() + static_cast<std::ptrdiff_t>(end));
      change.difference = here - mean(around);
      ++k;  // the way back belongs to it
    }
    change.p = test.p(values.subspan(begin, end - begin), least_variance);
    changes.push_back(change);
  }
  return changes;
}

/// Sum of squares around the levels.
double residual_of(std::span<const double> values, const std::vector<std::size_t>& firsts) {
  std::size_t begin = 0;
  double sum = 0;
  for (std::size_t part = 0; part <= firsts.size(); ++part) {
    const std::size_t end = part < firsts.size() ? firsts[part] : values.size();
    const auto n = static_cast<double>(end - begin);
    sum += (n - 1) * std::pow(standard_deviation(values.subspan(begin, end - begin)), 2);
    begin = end;
  }
  return sum;
}

/// Named changes without those that are no larger than the noise of the whole row makes them:
/// between two others few values may have had little of it. `firsts`: theirs.
std::vector<LevelChange> changes_outside_noise(std::span<const double> values, double alpha,
                                               double least_variance,
                                               std::vector<std::size_t>& firsts, ChangeTest& test) {
  std::vector<LevelChange> changes = named_changes(values, firsts, least_variance, test);
  while (changes.size() > 1) {
    const auto freedom = static_cast<double>(values.size() - firsts.size() - 1);
    const double pooled = residual_of(values, firsts) / freedom;
    changes = named_changes(values, firsts, std::max(least_variance, pooled), test);
    const auto worst = std::ranges::max_element(changes, {}, &LevelChange::p);
    if (worst->p <= alpha) break;
    std::erase(firsts, worst->first);
    if (worst->kind != ChangeKind::step) std::erase(firsts, worst->end);
    changes = named_changes(values, firsts, least_variance, test);
  }
  return changes;
}

/// Sum of squares around the line of Sen's slope.
double residual_of(std::span<const double> values, const TrendTest& trend) {
  std::vector<double> rest(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < rest.size(); ++i)
    rest[i] -= trend.change * static_cast<double>(i) / last;
  return residual_of(rest, std::vector<std::size_t>{});
}

}  // namespace

std::string to_string(ChangeKind kind) {
  return kind == ChangeKind::step ? "step" : kind == ChangeKind::dip ? "dip" : "peak";
}

RowFindings find_changes(std::span<const double> values, double alpha, double least_variance,
                         ChangeTest& test) {
  RowFindings found;
  if (values.size() < 2 * kLeastSegment) return found;
  const auto n = static_cast<double>(values.size());
  std::vector<double> times(values.size());
  std::iota(times.begin(), times.end(), 0);
  const TrendTest trend = find_trend(times, values);
  std::vector<std::size_t> firsts = find_levels(values, alpha / 2, least_variance, test);
  found.changes = changes_outside_noise(values, alpha / 2, least_variance, firsts, test);
  // A step takes a level and a place, a line its slope.
  const double freedom = std::max(1., n - 1 - 2 * static_cast<double>(firsts.size()));
  double variance = residual_of(values, firsts) / freedom;
  if (trend.p <= alpha / 2) {
    const double around_line = residual_of(values, trend) / (n - 2);
    if (firsts.empty() || around_line < variance) {
      found.drift = Drift{trend.change, trend.p};
      variance = around_line;
      found.changes.clear();
    }
  }
  found.deviation = std::sqrt(variance);
  return found;
}

History find_history(const std::vector<ResultSet>& sets, const Matching& matching, double alpha) {
  if (sets.size() < kLeastSets)
    throw ConfigError(
        fmt::format("--history: {} sets in a row tell a change from sets that differ anyway too "
                    "badly; give {} or more",
                    sets.size(), kLeastSets));
  const LogRatesOfSets common = common_log_rates(matching);
  if (common.empty()) throw ConfigError("--history: no point is common to all sets");
  History history;
  history.points = common.size();
  for (std::size_t set = 0; set < sets.size(); ++set) {
    history.levels.push_back(level_of(common, set));
    history.rates.push_back(std::exp(history.levels.back() - history.levels.front()));
  }
  const auto variance = launch_variance(common);
  if (variance) history.launch_noise = std::sqrt(*variance);
  ChangeTest test;
  history.found =
      find_changes(history.levels, alpha, std::max(variance.value_or(0), kLeastVariance), test);
  const double noise = std::max(history.found.deviation, history.launch_noise.value_or(0));
  history.smallest_step = noise * test.smallest_step(sets.size(), alpha / 2, kHistoryPower);
  std::map<std::size_t, double> steps;
  for (const double percent : kAskedPercent) {
    history.needed.push_back({percent, std::nullopt});
    for (const std::size_t size : kRowSizes) {
      const auto [at, is_new] = steps.try_emplace(size, 0);
      if (is_new) at->second = test.smallest_step(size, alpha / 2, kHistoryPower);
      if (noise * at->second > std::log1p(percent / 100)) continue;
      history.needed.back().sets = size;
      break;
    }
  }
  return history;
}

namespace {

double percent_of(double difference) { return 100 * std::expm1(difference); }

Json changes_json(const std::vector<ResultSet>& sets, const std::vector<LevelChange>& changes) {
  Json all = Json::array();
  for (const LevelChange& change : changes)
    all.push_back({{"after", sets[change.first - 1].label},
                   {"at", sets[change.first].label},
                   {"change_percent", percent_of(change.difference)},
                   {"p", change.p},
                   {"kind", to_string(change.kind)},
                   {"until", change.kind == ChangeKind::step ? Json(nullptr)
                                                             : Json(sets[change.end - 1].label)}});
  return all;
}

}  // namespace

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
  record["changes"] = changes_json(sets, history.found.changes);
  record["drift"] = nullptr;
  if (const auto& drift = history.found.drift)
    record["drift"] = {{"change_percent", percent_of(drift->difference)}, {"p", drift->p}};
  record["set_noise_percent"] = percent_of(history.found.deviation);
  record["launch_noise_percent"] = nullptr;
  if (history.launch_noise) record["launch_noise_percent"] = percent_of(*history.launch_noise);
  record["detectable_percent"] = percent_of(history.smallest_step);
  record["sets_needed"] = Json::array();
  for (const SetsNeeded& needed : history.needed)
    record["sets_needed"].push_back(
        {{"change_percent", needed.change_percent}, {"sets", or_null(needed.sets)}});
  record["notes"] = notes;
  record["warnings"] = warnings;
  record["unavailable"] = Json::object();
  explain_nulls(record, "changes.until", "a step lasts");
  explain_nulls(record, "drift", "no trend is shown that steps do not explain better");
  explain_nulls(record, "launch_noise_percent", "no set has two launches of a point");
  explain_nulls(record, "sets_needed.sets", "more than 40");
  diagnosis::add_findings(record);
  return record;
}

}  // namespace scalemark
