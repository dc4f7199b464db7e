// Prints what the record of `project` says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;
/// Makes text of a record safe for where it is shown: shown() or markdown_text().
using Clean = std::string (*)(std::string_view);

std::string with_band(const record::Predicted& of) {
  return fmt::format("{} [{}, {}]", four_digits(of.value), four_digits(of.band.lo, of.value),
                     four_digits(of.band.hi, of.value));
}

std::string percent_band(const record::Predicted& of) {
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * of.value, 100 * of.band.lo,
                     100 * of.band.hi);
}

std::string spoken_band(const record::KnownPrediction& of) {
  if (!of.value || !of.band) return kNone;
  return fmt::format("{} [{}, {}]", spoken_seconds(*of.value), spoken_seconds(of.band->lo),
                     spoken_seconds(of.band->hi));
}

/// Returns "fitted: +0.3 %" where the model was fitted to the point, and "unseen: +2.1 %" where the
/// point was held out.
std::string against_measured(const record::ProjectedPoint& point) {
  if (!point.error_percent) return kNone;
  return fmt::format("{} {:+.1f} %", point.held_out ? "unseen" : "fitted", *point.error_percent);
}

bool is_sharded(const ProjectionResult& result) {
  return result.curve.shard && *result.curve.shard != "none";
}

/// What a collective of a sharded step takes, and what of it the step shows.
std::string spoken_part(const record::ProjectedPoint& point, std::size_t place) {
  if (point.ranks < 2 || !point.collectives || point.collectives->size() <= place) return kNone;
  const record::ProjectedCollective& part = (*point.collectives)[place];
  return fmt::format("{} of {}", spoken_seconds(part.exposed_seconds),
                     spoken_seconds(part.seconds));
}

std::vector<std::string> header(const ProjectionResult& result, Clean clean) {
  std::vector<std::string> names{"ranks",      "batch",
                                 "step s",     clean(result.curve.unit),
                                 "efficiency", "constant efficiency",
                                 "straggler",  "exposed",
                                 "allreduce",  "against measured"};
  if (is_sharded(result)) {
    names[8] = "algorithm";
    names.insert(names.begin() + 8, {"of reduce-scatter", "of all-gather"});
  }
  if (result.budget) {
    names.push_back("time to solution");
    names.push_back("times as fast");
  }
  return names;
}

Rows projection_rows(const ProjectionResult& result, Clean clean) {
  Rows rows{header(result, clean)};
  for (const record::ProjectedPoint& point : result.points) {
    rows.push_back({std::to_string(point.ranks), fmt::format("{:g}", point.batch_size_per_rank),
                    four_digits(point.step_seconds.value), with_band(point.throughput),
                    percent_band(point.efficiency),
                    four_digits(point.constant_efficiency_throughput),
                    spoken_seconds(point.straggler_seconds), spoken_seconds(point.exposed_seconds),
                    point.algorithm ? clean(*point.algorithm) : kNone, against_measured(point)});
    if (is_sharded(result))
      rows.back().insert(rows.back().begin() + 8, {spoken_part(point, 0), spoken_part(point, 1)});
    if (!result.budget) continue;
    const auto& speedup = point.time_to_solution_speedup.value;
    rows.back().push_back(spoken_band(point.time_to_solution_seconds));
    rows.back().push_back(speedup ? four_digits(*speedup) : kNone);
  }
  return rows;
}

std::string projection_title(const ProjectionResult& result, Clean clean) {
  std::vector<std::int64_t> ranks;
  for (const record::FittedPoint& point : result.fit.points) ranks.push_back(point.ranks);
  const std::string shard =
      is_sharded(result) ? fmt::format(", shard {}", clean(*result.curve.shard)) : "";
  return fmt::format("{} of {}{}, {} scaling, fitted to {} ranks", clean(result.curve.model),
                     clean(result.curve.path), shard, to_string(result.curve.scaling),
                     fmt::join(ranks, ", "));
}

Rows parameter_rows(const ProjectionResult& result, Clean clean) {
  Rows rows{{"parameter", "value", "90 % range", "from"}};
  for (const record::FittedParameter& parameter : result.fit.parameters)
    rows.push_back(
        {clean(parameter.name) + (parameter.unit.empty() ? "" : ", " + clean(parameter.unit)),
         fmt::format("{:.3g}", parameter.value),
         fmt::format("{:.3g} to {:.3g}", parameter.range.lo, parameter.range.hi),
         clean(parameter.origin)});
  return rows;
}

/// Says how far the model is from each point that it was fitted to.
std::string residuals_line(const record::Fit& fit) {
  std::vector<std::string> misses;
  for (const record::FittedPoint& point : fit.points) {
    if (!point.residual_percent || !point.assumed_error_percent) continue;
    const bool miss = std::abs(*point.residual_percent) > *point.assumed_error_percent;
    misses.push_back(fmt::format("{}: {:+.1f} %{}", point.ranks, *point.residual_percent,
                                 miss ? " (a miss)" : ""));
  }
  return fmt::format("measured steps against the cost model, by ranks: {}",
                     fmt::join(misses, ", "));
}

std::string trend_line(const record::FittedTrend& trend) {
  return fmt::format(
      "the curve itself shows a loss of {:.1f} % a doubling, of which {:.1f} % is believed: {:.0f} "
      "% "
      "of a prediction beyond the fitted ranks leans on it, the rest on the cost model",
      trend.shown_loss_percent, trend.loss_percent_per_doubling, 100 * trend.share);
}

/// Returns the sentences below the tables.
std::vector<std::string> projection_footer(const ProjectionResult& result, Clean clean) {
  std::vector<std::string> lines{residuals_line(result.fit)};
  if (result.fit.trend) lines.push_back(trend_line(*result.fit.trend));
  lines.push_back(fmt::format(
      "[ ]: {:.0f} % of what the model holds for possible; a band of the model, no promise. Per "
      "rank: batch in samples.",
      100 * result.confidence));
  if (result.budget)
    lines.push_back(
        fmt::format("times as fast: time to solution of {} measured {} / that of the row",
                    result.base.ranks, result.base.ranks == 1 ? "rank" : "ranks"));
  if (const auto& errors = result.errors)
    lines.push_back(fmt::format(
        "unseen points: {}, mean error {:.1f} %; constant efficiency {:.1f} %, linear {:.1f} %; in "
        "the band {} of {}",
        errors->points, errors->model, errors->constant_efficiency, errors->linear, errors->in_band,
        errors->points));
  if (const auto& source = result.curve.source) lines.push_back("source: " + clean(*source));
  for (const std::string& why : result.curve.left_out) lines.push_back("left out: " + clean(why));
  for (const std::string& warning : result.warnings) lines.push_back("warning: " + clean(warning));
  return lines;
}

}  // namespace

std::string spoken_seconds(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  for (const Unit& unit : {Unit{365.25 * 86400, "years"}, Unit{86400, "days"}, Unit{3600, "h"},
                           Unit{60, "min"}, Unit{1, "s"}, Unit{1e-3, "ms"}})
    if (seconds >= (unit.seconds == 86400 ? 2 * 86400 : unit.seconds))
      return fmt::format("{:.3g} {}", seconds / unit.seconds, unit.name);
  return fmt::format("{:.3g} us", 1e6 * seconds);
}

std::string projection_table(const ProjectionResult& result) {
  std::string text = projection_title(result, shown) + "\n\n" +
                     text_table(projection_rows(result, shown)) + "\n" +
                     text_table(parameter_rows(result, shown)) + "\n";
  for (const std::string& line : projection_footer(result, shown)) text += line + "\n";
  return text;
}

std::string projection_markdown(const ProjectionResult& result) {
  std::string text = "**" + projection_title(result, markdown_text) + "**\n\n" +
                     markdown_table(projection_rows(result, markdown_text)) + "\n" +
                     markdown_table(parameter_rows(result, markdown_text)) + "\n";
  for (const std::string& line : projection_footer(result, markdown_text))
    text += "- " + line + "\n";
  return text;
}

}  // namespace scalemark
