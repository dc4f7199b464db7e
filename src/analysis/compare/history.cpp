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
#include "record/write.hpp"
#include "result/records.hpp"

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
  for (const MatchedPoint& point : matching.points) common_unit(point);
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
    history.needed.push_back({percent, Unknown{"more than 40"}});
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

std::vector<record::HistorySet> sets_of(const std::vector<ResultSet>& sets,
                                        const History& history) {
  std::vector<record::HistorySet> all;
  for (std::size_t i = 0; i < sets.size(); ++i)
    all.push_back({compared_set(sets[i]), history.rates[i]});
  return all;
}

std::vector<record::HistoryChange> changes_of(const std::vector<ResultSet>& sets,
                                              const std::vector<LevelChange>& changes) {
  std::vector<record::HistoryChange> all;
  for (const LevelChange& change : changes) {
    all.push_back({sets[change.first - 1].label, sets[change.first].label,
                   percent_of(change.difference), change.p, change.kind, Unknown{"a step lasts"}});
    if (change.kind != ChangeKind::step) all.back().until = sets[change.end - 1].label;
  }
  return all;
}

}  // namespace

HistoryResult make_history(const std::vector<ResultSet>& sets, const History& history, double alpha,
                           const std::vector<std::string>& notes,
                           const std::vector<std::string>& warnings) {
  HistoryResult made;
  set_envelope(made, "history", {});
  made.alpha = alpha;
  made.points = history.points;
  made.sets = sets_of(sets, history);
  made.changes = changes_of(sets, history.found.changes);
  made.drift = Unknown{"no trend is shown that steps do not explain better"};
  if (const auto& drift = history.found.drift)
    made.drift = record::HistoryDrift{percent_of(drift->difference), drift->p};
  made.set_noise_percent = percent_of(history.found.deviation);
  made.launch_noise_percent = Unknown{"no set has two launches of a point"};
  if (history.launch_noise) made.launch_noise_percent = percent_of(*history.launch_noise);
  made.detectable_percent = percent_of(history.smallest_step);
  made.sets_needed = history.needed;
  made.notes = notes;
  made.warnings = warnings;
  made.findings = diagnosis::written(diagnosis::diagnose(record_json(made)));
  return made;
}

}  // namespace scalemark
