// See time_order.hpp.
#include "analysis/compare/time_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "analysis/compare/repeats.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"

namespace scalemark {
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
