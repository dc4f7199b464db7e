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

/// Returns null where fewer than two points have launches.
Json fastest_json(const std::vector<SweepResult>& results, const SweepResult& standard) {
  std::vector<Repeats> points;
  for (const SweepResult& result : results)
    points.push_back(factor(result, standard) ? throughputs_of(result) : Repeats());
  const auto fastest = find_fastest(points);
  if (!fastest) return nullptr;
  const SweepResult& best = results[fastest->point];
  return {{"point", best.title},
          {"over", standard.title},
          {"factor", *factor(best, standard)},
          {"shown", fastest->shown},
          {"p", fastest->p},
          {"as_fast", fastest->as_fast},
          {"repeats_needed", fastest->too_few ? Json(fastest->repeats_needed) : Json(nullptr)}};
}

/// Names the fastest point only where the launches show it.
std::string fastest_line(const Json& fastest) {
  if (fastest.is_null()) return "";
  const std::string named =
      fmt::format("{}, {:.3f} x {}", shown(fastest["point"].get<std::string>()),
                  fastest["factor"].get<double>(), shown(fastest["over"].get<std::string>()));
  if (fastest["shown"] == true)
    return fmt::format("fastest: {} (faster than every other point, p = {:.4f})\n", named,
                       fastest["p"].get<double>());
  return fmt::format(
      "fastest: not shown; {} (largest mean: {})\n",
      fastest["repeats_needed"].is_null()
          ? counted(fastest["as_fast"].get<std::size_t>(), "other point") + " may be as fast"
          : fmt::format("repeat {} times", fastest["repeats_needed"].dump()),
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

Json sweep_json(const std::vector<SweepResult>& results, std::optional<std::size_t> standard) {
  Json points = Json::array();
  for (const SweepResult& result : results) {
    const Repeats rates = throughputs_of(result);
    Json records = Json::array(), throughput;
    for (const MeasuredLaunch& launch : result.launches) records.push_back(launch.path.string());
    if (!rates.empty()) {
      const auto [smallest, largest] = std::ranges::minmax(rates, {}, &Repeat::value);
      throughput = {{"mean", value_of(rates, kMetric)},
                    {"smallest", smallest.value},
                    {"largest", largest.value}};
    }
    points.push_back({{"point", result.title},
                      {"launches", rates.size()},
                      {"failed", result.failed},
                      {"unit", rates.empty() ? Json() : Json(result.launches.front().unit)},
                      {"throughput", throughput},
                      {"records", records}});
    if (standard) points.back()["over_default"] = or_null(factor(result, results[*standard]));
  }
  return {{"points", points},
          {"fastest", standard ? fastest_json(results, results[*standard]) : Json()}};
}

std::string sweep_table(const Json& sweep) {
  std::vector<std::vector<std::string>> rows{
      {"point", "launches", "failed", "mean", "smallest", "largest", "unit"}};
  for (const Json& point : sweep["points"]) {
    std::vector<std::string> row{shown(point["point"].get<std::string>()), point["launches"].dump(),
                                 point["failed"].dump()};
    const Json& rate = point["throughput"];
    for (const char* key : {"mean", "smallest", "largest"})
      row.push_back(rate.is_null() ? "-" : four_digits(rate[key], rate["mean"].get<double>()));
    row.push_back(rate.is_null() ? "-" : point["unit"].get<std::string>());
    if (const auto over = point.find("over_default"); over != point.end())
      row.push_back(over->is_null() ? "-" : fmt::format("{:.3f}", over->get<double>()));
    rows.push_back(std::move(row));
  }
  if (rows.back().size() > rows.front().size()) rows.front().push_back("x default");
  return text_table(rows) +
         "mean: units of all launches / their seconds, as scalemark compare has it\n" +
         fastest_line(sweep["fastest"]);
}

}  // namespace scalemark
