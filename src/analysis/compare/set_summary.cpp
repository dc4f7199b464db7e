// See set_summary.hpp.
#include "analysis/compare/set_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "analysis/compare/point_test.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"
#include "platform/platform.hpp"
#include "result/baseline.hpp"

namespace scalemark {
namespace {

/// The distinct values of a member of all launches.
template <typename Member>
Json distinct(const ResultSet& set, Member member) {
  std::set<std::string> values;
  for (const MeasuredLaunch& launch : set.launches)
    if (!(launch.*member).empty()) values.insert(launch.*member);
  return Json(values);
}

/// Variables that say how launches communicate; those of a job or of a place differ by themselves.
bool tells(const std::string& name) {
  if (name.starts_with("OMPI_MCA_")) return name.find("btl") != name.npos;
  return is_communication_variable(name);
}

std::map<std::string, std::set<std::string>> variables_of(const ResultSet& set) {
  std::map<std::string, std::set<std::string>> variables;
  for (const MeasuredLaunch& launch : set.launches)
    for (const auto& [name, value] : launch.environment)
      if (tells(name)) variables[name].insert(value);
  return variables;
}

/// How many launches others disturbed, and the worst of it.
void add_foreign_load(std::vector<std::string>& notes, const ResultSet& set) {
  const ForeignLoad* most = nullptr;
  int disturbed = 0;
  for (const MeasuredLaunch& launch : set.launches) {
    if (!launch.foreign || !launch.foreign->notable()) continue;
    ++disturbed;
    if (!most || launch.foreign->cpus > most->cpus) most = &*launch.foreign;
  }
  if (most)
    notes.push_back(fmt::format("{} of {} launches of {} were measured on a busy machine: {} of {}",
                                disturbed, set.launches.size(), set.label, most->words(),
                                most->host));
}

}  // namespace

Json set_json(const ResultSet& set) {
  std::vector<std::string> records;
  std::set<std::string> seen;
  for (const MeasuredLaunch& launch : set.launches)
    if (seen.insert(launch.id).second) records.push_back(launch.id);
  return {{"label", set.label},
          {"path", set.path},
          {"records", records},
          {"revisions", distinct(set, &MeasuredLaunch::revision)},
          {"hosts", distinct(set, &MeasuredLaunch::host)},
          {"left_out", set.left_out}};
}

std::vector<std::string> set_notes(const std::vector<ResultSet>& sets, const Matching& matching,
                                   const std::vector<std::string>& varied) {
  std::vector<std::string> notes = matching.notes;
  const auto ours = variables_of(sets.front());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto theirs = variables_of(sets[i]);
    std::set<std::string> names;
    for (const auto& [name, values] : ours)
      if (!theirs.contains(name) || theirs.at(name) != values) names.insert(name);
    for (const auto& [name, values] : theirs)
      if (!ours.contains(name)) names.insert(name);
    for (const std::string& declared : varied)
      if (declared.starts_with("env.")) names.erase(declared.substr(4));
    if (!names.empty())
      notes.push_back(fmt::format("variables differ between {} and {}: {}", sets[0].label,
                                  sets[i].label, fmt::join(names, ", ")));
  }
  for (const ResultSet& set : sets) add_foreign_load(notes, set);
  for (const ResultSet& set : sets) {
    const Json revisions = distinct(set, &MeasuredLaunch::revision);
    if (revisions.size() > 1)
      notes.push_back(fmt::format("{} pools launches of {} builds; --by revision compares them",
                                  set.label, revisions.size()));
  }
  return notes;
}

std::vector<std::string> machine_notes(const std::vector<ResultSet>& sets) {
  std::vector<std::string> notes;
  for (std::size_t i = 1; i < sets.size(); ++i) {
    auto differences = machine_differences(sets[0], sets[i], kHardwareKeys);
    std::ranges::move(machine_differences(sets[0], sets[i], kSoftwareKeys),
                      std::back_inserter(differences));
    if (!differences.empty())
      notes.push_back(fmt::format("the machines of {} and {} differ in {}", sets[0].label,
                                  sets[i].label, fmt::join(differences, "; ")));
  }
  return notes;
}

namespace {

struct Span {
  std::string first, last;
};

/// From the first to the last start of a set's launches at matched points; none below two starts.
std::optional<Span> span_of(const Matching& matching, std::size_t set) {
  Span span;
  for (const MatchedPoint& point : matching.points)
    for (const MeasuredLaunch* launch : point.launches[set]) {
      const std::string& start = launch->started_at;
      if (start.empty()) continue;
      if (span.first.empty() || start < span.first) span.first = start;
      if (start > span.last) span.last = start;
    }
  if (span.first == span.last) return std::nullopt;
  return span;
}

std::string apart(const ResultSet& early, const Span& early_span, const ResultSet& late,
                  const Span& late_span) {
  return fmt::format(
      "all launches of {} (last start {}) lie before those of {} (first start {}): what the "
      "machine "
      "did in between reads as a difference; measure them side by side, in one sweep or by "
      "scalemark gate --base --new",
      early.label, early_span.last, late.label, late_span.first);
}

struct Timed {
  double seconds, residual;
};

/// Of every point the logarithms less their mean, so that points of unlike rates are one series.
std::vector<Timed> residuals(const Matching& matching, std::size_t set, const std::string& metric) {
  std::vector<Timed> series;
  for (const MatchedPoint& point : matching.points) {
    const Repeats repeats = repeats_of(point.launches[set], metric, false);
    if (repeats.size() < 2) continue;
    const auto logs = logs_of(repeats);
    const double level = mean(logs);
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      const double seconds = seconds_of(repeats[i].launch->started_at);
      if (std::isfinite(seconds) && std::isfinite(logs[i]))
        series.push_back({seconds, logs[i] - level});
    }
  }
  std::ranges::stable_sort(series, {}, &Timed::seconds);
  return series;
}

TrendTest trend_of(const std::vector<Timed>& series) {
  std::vector<double> times, values;
  for (const Timed& one : series) {
    times.push_back(one.seconds);
    values.push_back(one.residual);
  }
  return find_trend(times, values);
}

void warn_of_trends(std::vector<std::string>& warnings, const std::vector<ResultSet>& sets,
                    const Matching& matching, const std::string& metric, double alpha) {
  std::vector<TrendTest> trends;
  std::vector<double> p;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    trends.push_back(trend_of(residuals(matching, set, metric)));
    p.push_back(trends.back().p);
  }
  const auto adjusted = holm_adjusted(p);
  for (std::size_t set = 0; set < sets.size(); ++set)
    if (adjusted[set] <= alpha)
      warnings.push_back(fmt::format(
          "{} of {} has a trend of {:+.1f} % from its first to its last launch (Mann-Kendall, p = "
          "{:.2g}): its launches are not of one level, and p and intervals assume that they are",
          metric, sets[set].label, 100 * std::expm1(trends[set].change), p[set]));
}

}  // namespace

double seconds_of(const std::string& time) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  if (std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return std::numeric_limits<double>::quiet_NaN();
  using namespace std::chrono;
  const sys_days date = std::chrono::year(year) / month / day;
  return 86400. * static_cast<double>(date.time_since_epoch().count()) + 3600. * hour +
         60. * minute + second;
}

std::vector<std::string> time_warnings(const std::vector<ResultSet>& sets, const Matching& matching,
                                       const std::string& metric, double alpha) {
  std::vector<std::string> warnings;
  const auto base = span_of(matching, 0);
  for (std::size_t set = 1; set < sets.size(); ++set) {
    const auto other = span_of(matching, set);
    if (!base || !other) continue;
    if (base->last < other->first)
      warnings.push_back(apart(sets[0], *base, sets[set], *other));
    else if (other->last < base->first)
      warnings.push_back(apart(sets[set], *other, sets[0], *base));
  }
  warn_of_trends(warnings, sets, matching, metric == "efficiency" ? "throughput" : metric, alpha);
  return warnings;
}

}  // namespace scalemark
