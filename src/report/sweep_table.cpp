// Prints the progress and the points of a sweep.
#include "report/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/point_test.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr const char* kMetric = "throughput";

Repeats throughputs_of(const SweepResult& result) {
  std::vector<const MeasuredLaunch*> launches;
  for (const MeasuredLaunch& launch : result.launches) launches.push_back(&launch);
  return repeats_of(launches, kMetric, /*rounds=*/false);
}

/// Returns the factor over the standard point, or nullopt where one of the two has no throughput or
/// their units differ.
std::optional<double> factor(const SweepResult& result, const SweepResult& standard) {
  if (result.launches.empty() || standard.launches.empty() ||
      result.launches.front().unit != standard.launches.front().unit)
    return std::nullopt;
  return value_of(throughputs_of(result), kMetric) / value_of(throughputs_of(standard), kMetric);
}

/// Returns nothing where fewer than two points have launches.
std::optional<FastestPoint> fastest_of(const std::vector<SweepResult>& results,
                                       const SweepResult& standard) {
  std::vector<Repeats> points;
  for (const SweepResult& result : results)
    points.push_back(factor(result, standard) ? throughputs_of(result) : Repeats());
  const auto fastest = find_fastest(points);
  if (!fastest) return std::nullopt;
  const SweepResult& best = results[fastest->point];
  FastestPoint found{.point = best.title,
                     .over = standard.title,
                     .factor = *factor(best, standard),
                     .shown = fastest->shown,
                     .p = fastest->p,
                     .as_fast = fastest->as_fast,
                     .repeats_needed = {}};
  if (fastest->too_few) found.repeats_needed = fastest->repeats_needed;
  return found;
}

/// Names the fastest point only where the launches show it.
std::string fastest_line(const FastestPoint& fastest) {
  const std::string named =
      fmt::format("{}, {:.3f} x {}", shown(fastest.point), fastest.factor, shown(fastest.over));
  if (fastest.shown)
    return fmt::format("fastest: {} (faster than every other point, p = {:.4f})\n", named,
                       fastest.p);
  return fmt::format("fastest: not shown; {} (largest mean: {})\n",
                     fastest.repeats_needed
                         ? fmt::format("repeat {} times", *fastest.repeats_needed)
                         : counted(fastest.as_fast, "other point") + " may be as fast",
                     named);
}

}  // namespace

void SweepProgress::start(const std::string& title, std::int64_t repeat) {
  std::string left;
  if (finished_ > 0)
    left = fmt::format(", {} left", about_duration(seconds_ / static_cast<double>(finished_) *
                                                   static_cast<double>(launches_ - finished_)));
  say_progress(
      fmt::format("[{}/{}] {}, repeat {}{}", finished_ + 1, launches_, shown(title), repeat, left));
}

void SweepProgress::finish(double seconds, const std::string& outcome) {
  ++finished_;
  seconds_ += seconds;
  say_progress(fmt::format("    {} ({})", shown(outcome), format_duration(seconds)));
}

void SweepRates::describe(Fields& fields) {
  fields.add("mean", &SweepRates::mean);
  fields.add("smallest", &SweepRates::smallest);
  fields.add("largest", &SweepRates::largest);
}

void SweptPoint::describe(Fields& fields) {
  fields.add("point", &SweptPoint::point);
  fields.add("launches", &SweptPoint::launches);
  fields.add("failed", &SweptPoint::failed);
  fields.add("unit", &SweptPoint::unit);
  fields.add("throughput", &SweptPoint::throughput);
  fields.add("records", &SweptPoint::records);
  fields.add("over_default", &SweptPoint::over_default);
}

void FastestPoint::describe(Fields& fields) {
  fields.add("point", &FastestPoint::point);
  fields.add("over", &FastestPoint::over);
  fields.add("factor", &FastestPoint::factor);
  fields.add("shown", &FastestPoint::shown);
  fields.add("p", &FastestPoint::p);
  fields.add("as_fast", &FastestPoint::as_fast);
  fields.add("repeats_needed", &FastestPoint::repeats_needed);
}

void SweepSummary::describe(Fields& fields) {
  fields.add("points", &SweepSummary::points);
  fields.add("fastest", &SweepSummary::fastest);
}

SweepSummary summary_of(const std::vector<SweepResult>& results,
                        std::optional<std::size_t> standard) {
  SweepSummary sweep;
  sweep.has_standard = standard.has_value();
  for (const SweepResult& result : results) {
    SweptPoint& point = sweep.points.emplace_back();
    point.point = result.title;
    point.failed = result.failed;
    for (const MeasuredLaunch& launch : result.launches)
      point.records.push_back(launch.path.string());
    if (const Repeats rates = throughputs_of(result); !rates.empty()) {
      const auto [smallest, largest] = std::ranges::minmax(rates, {}, &Repeat::value);
      point.launches = rates.size();
      point.unit = result.launches.front().unit;
      point.throughput = {value_of(rates, kMetric), smallest.value, largest.value};
    }
    if (standard) point.over_default = factor(result, results[*standard]);
  }
  if (standard) sweep.fastest = fastest_of(results, results[*standard]);
  return sweep;
}

std::string sweep_table(const SweepSummary& sweep) {
  std::vector<std::vector<std::string>> rows{
      {"point", "launches", "failed", "mean", "smallest", "largest", "unit"}};
  if (sweep.has_standard) rows.front().push_back("x default");
  for (const SweptPoint& point : sweep.points) {
    std::vector<std::string> row{shown(point.point), std::to_string(point.launches),
                                 std::to_string(point.failed)};
    const auto& rate = point.throughput;
    for (double SweepRates::*const value :
         {&SweepRates::mean, &SweepRates::smallest, &SweepRates::largest})
      row.push_back(rate ? four_digits(*rate.*value, rate->mean) : "-");
    row.push_back(rate ? *point.unit : "-");
    if (sweep.has_standard)
      row.push_back(point.over_default ? fmt::format("{:.3f}", *point.over_default) : "-");
    rows.push_back(std::move(row));
  }
  return text_table(rows) +
         "mean: units of all launches / their seconds, as scalemark compare has it\n" +
         (sweep.fastest ? fastest_line(*sweep.fastest) : "");
}

}  // namespace scalemark
