// What `project` prints.
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
/// How a text of the record becomes safe where it is shown: shown() or markdown_text().
using Clean = std::string (*)(std::string_view);

std::string text_of(const Json& text, Clean clean) { return clean(text.get<std::string>()); }

std::string with_band(const Json& point, const std::string& key, double factor = 1) {
  if (point.at(key).is_null()) return kNone;
  const double value = factor * point.at(key).get<double>();
  const Json& band = point.at(key + "_band");
  return fmt::format("{} [{}, {}]", four_digits(value),
                     four_digits(factor * band[0].get<double>(), value),
                     four_digits(factor * band[1].get<double>(), value));
}

std::string percent_band(const Json& point) {
  const Json& band = point.at("efficiency_band");
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * point.at("efficiency").get<double>(),
                     100 * band[0].get<double>(), 100 * band[1].get<double>());
}

std::string spoken_band(const Json& point) {
  const Json& band = point.at("time_to_solution_seconds_band");
  return fmt::format("{} [{}, {}]",
                     spoken_seconds(point.at("time_to_solution_seconds").get<double>()),
                     spoken_seconds(band[0].get<double>()), spoken_seconds(band[1].get<double>()));
}

/// "fitted: +0.3 %" where the point is the model's own, "unseen: +2.1 %" where it was held out.
std::string against_measured(const Json& point) {
  if (point.at("measured_throughput").is_null()) return kNone;
  return fmt::format("{} {:+.1f} %", point.at("held_out") == true ? "unseen" : "fitted",
                     point.at("error_percent").get<double>());
}

std::vector<std::string> header(const Json& record, Clean clean) {
  std::vector<std::string> names{"ranks",      "batch",
                                 "step s",     text_of(record.at("curve").at("unit"), clean),
                                 "efficiency", "constant efficiency",
                                 "straggler",  "exposed",
                                 "allreduce",  "against measured"};
  if (!record.at("budget").is_null()) {
    names.push_back("time to solution");
    names.push_back("times as fast");
  }
  return names;
}

Rows projection_rows(const Json& record, Clean clean) {
  Rows rows{header(record, clean)};
  for (const Json& point : record.at("points")) {
    rows.push_back({point.at("ranks").dump(),
                    fmt::format("{:g}", point.at("batch_size_per_rank").get<double>()),
                    four_digits(point.at("step_seconds").get<double>()),
                    with_band(point, "throughput"), percent_band(point),
                    four_digits(point.at("constant_efficiency_throughput").get<double>()),
                    spoken_seconds(point.at("straggler_seconds").get<double>()),
                    spoken_seconds(point.at("exposed_seconds").get<double>()),
                    point.at("algorithm").is_null() ? kNone : text_of(point.at("algorithm"), clean),
                    against_measured(point)});
    if (record.at("budget").is_null()) continue;
    rows.back().push_back(spoken_band(point));
    rows.back().push_back(four_digits(point.at("time_to_solution_speedup").get<double>()));
  }
  return rows;
}

std::string projection_title(const Json& record, Clean clean) {
  const Json& curve = record.at("curve");
  std::vector<std::string> ranks;
  for (const Json& point : record.at("fit").at("points")) ranks.push_back(point.at("ranks").dump());
  return fmt::format("{} of {}, {} scaling, fitted to {} ranks", text_of(curve.at("model"), clean),
                     text_of(curve.at("path"), clean), text_of(curve.at("scaling"), clean),
                     fmt::join(ranks, ", "));
}

Rows parameter_rows(const Json& record, Clean clean) {
  Rows rows{{"parameter", "value", "90 % range", "from"}};
  for (const Json& parameter : record.at("fit").at("parameters")) {
    const std::string unit = text_of(parameter.at("unit"), clean);
    const Json& range = parameter.at("range");
    rows.push_back({text_of(parameter.at("name"), clean) + (unit.empty() ? "" : ", " + unit),
                    fmt::format("{:.3g}", parameter.at("value").get<double>()),
                    fmt::format("{:.3g} to {:.3g}", range[0].get<double>(), range[1].get<double>()),
                    text_of(parameter.at("origin"), clean)});
  }
  return rows;
}

/// How far the model is from each point that it was fitted to.
std::string residuals_line(const Json& fit) {
  std::vector<std::string> misses;
  for (const Json& point : fit.at("points"))
    misses.push_back(fmt::format("{}: {:+.1f} %{}", point.at("ranks").dump(),
                                 point.at("residual_percent").get<double>(),
                                 std::abs(point.at("residual_percent").get<double>()) >
                                         point.at("assumed_error_percent").get<double>()
                                     ? " (a miss)"
                                     : ""));
  return fmt::format("measured steps against the cost model, by ranks: {}",
                     fmt::join(misses, ", "));
}

std::string trend_line(const Json& trend) {
  return fmt::format(
      "the curve itself shows a loss of {:.1f} % a doubling, of which {:.1f} % is believed: {:.0f} "
      "% "
      "of a prediction beyond the fitted ranks leans on it, the rest on the cost model",
      trend.at("shown_loss_percent").get<double>(),
      trend.at("loss_percent_per_doubling").get<double>(), 100 * trend.at("share").get<double>());
}

/// Sentences below the tables.
std::vector<std::string> projection_footer(const Json& record, Clean clean) {
  std::vector<std::string> lines;
  lines.push_back(residuals_line(record.at("fit")));
  lines.push_back(trend_line(record.at("fit").at("trend")));
  lines.push_back(fmt::format(
      "[ ]: {:.0f} % of what the model holds for possible; a band of the model, no promise. Per "
      "rank: batch in samples.",
      100 * record.at("confidence").get<double>()));
  if (!record.at("budget").is_null())
    lines.push_back(
        fmt::format("times as fast: time to solution of {} measured {} / that of the row",
                    record.at("base").at("ranks").dump(),
                    record.at("base").at("ranks") == 1 ? "rank" : "ranks"));
  if (const Json& errors = record.at("errors"); !errors.is_null())
    lines.push_back(fmt::format(
        "unseen points: {}, mean error {:.1f} %; constant efficiency {:.1f} %, linear {:.1f} %; in "
        "the band {} of {}",
        errors.at("points").dump(), errors.at("model_percent").get<double>(),
        errors.at("constant_efficiency_percent").get<double>(),
        errors.at("linear_percent").get<double>(), errors.at("in_band").dump(),
        errors.at("points").dump()));
  const Json& curve = record.at("curve");
  if (!curve.at("source").is_null())
    lines.push_back("source: " + text_of(curve.at("source"), clean));
  for (const Json& why : curve.at("left_out")) lines.push_back("left out: " + text_of(why, clean));
  for (const Json& warning : record.at("warnings"))
    lines.push_back("warning: " + text_of(warning, clean));
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

std::string projection_table(const Json& record) {
  std::string text = projection_title(record, shown) + "\n\n" +
                     text_table(projection_rows(record, shown)) + "\n" +
                     text_table(parameter_rows(record, shown)) + "\n";
  for (const std::string& line : projection_footer(record, shown)) text += line + "\n";
  return text;
}

std::string projection_markdown(const Json& record) {
  std::string text = "**" + projection_title(record, markdown_text) + "**\n\n" +
                     markdown_table(projection_rows(record, markdown_text)) + "\n" +
                     markdown_table(parameter_rows(record, markdown_text)) + "\n";
  for (const std::string& line : projection_footer(record, markdown_text))
    text += "- " + line + "\n";
  return text;
}

}  // namespace scalemark
