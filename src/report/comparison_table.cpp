// See comparison_table.hpp.
#include "report/comparison_table.hpp"

#include <fmt/format.h>

#include <vector>

#include "report/text_table.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "not set" : value.dump();
}

std::string settings_text(const Json& settings) {
  std::string text;
  for (const auto& [name, value] : settings.items())
    text += fmt::format(" {}={}", name, setting_text(value));
  return text;
}

std::string signed_percent(const Json& value) {
  return fmt::format("{:+.1f} %", value.get<double>());
}

std::string interval(const Json& point) {
  const Json& bounds = point.at("interval_percent");
  if (bounds.is_null()) return kNone;
  return fmt::format("[{:+.1f}, {:+.1f}] %", bounds[0].get<double>(), bounds[1].get<double>());
}

std::string probability(const Json& p) {
  if (p.is_null()) return kNone;
  return p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", p.get<double>());
}

std::string detectable(const Json& point) {
  const Json& percent = point.at("minimum_detectable_percent");
  return percent.is_null() ? kNone : fmt::format("{:.1f} %", percent.get<double>());
}

const char* counted_repeats(const Json& point) {
  return point.at("repeat_unit") == "in_process" ? "repeats" : "launches";
}

std::string verdict(const Json& point) {
  const std::string word = point.at("verdict");
  if (word != "too few launches") return word;
  return fmt::format("too few {} (n={}; {} needed)", counted_repeats(point),
                     std::min(point.at("base_repeats"), point.at("repeats")).dump(),
                     point.at("repeats_needed").dump());
}

std::string repeats(const Json& point) {
  const std::string ours = point.at("base_repeats").dump(), theirs = point.at("repeats").dump();
  if (point.at("design") == "paired") return theirs + " pairs";
  return ours == theirs ? ours : fmt::format("{}, {}", ours, theirs);
}

std::vector<std::string> row(const Json& point) {
  const double base = point.at("base_value");
  return {point.at("ranks").dump() + settings_text(point.at("settings")),
          repeats(point),
          four_digits(base),
          four_digits(point.at("value").get<double>(), base),
          signed_percent(point.at("difference_percent")),
          interval(point),
          probability(point.at("p_adjusted")),
          detectable(point),
          verdict(point)};
}

/// The points of one set under their header.
Rows comparison_rows(const Json& record, const std::string& set) {
  Rows rows{{"ranks", "n", record.at("base").get<std::string>(), set, "difference", "95 % interval",
             "p (Holm)", "detectable", "verdict"}};
  for (const Json& point : record.at("points"))
    if (point.at("set") == set) rows.push_back(row(point));
  return rows;
}

std::string comparison_title(const Json& record, const std::string& set) {
  const std::string metric = record.at("metric");
  std::string unit, counts;
  for (const Json& point : record.at("points"))
    if (unit.empty() && point.at("set") == set) {
      unit = point.at("unit");
      counts = counted_repeats(point);
    }
  const std::string what = metric == "throughput" ? unit : fmt::format("{} ({})", metric, unit);
  std::string text = fmt::format("{} against {}: {}, n {}", set,
                                 record.at("base").get<std::string>(), what, counts);
  if (record.at("better") == "lower") text += ", lower is better";
  return text;
}

/// Sentences below the tables.
std::vector<std::string> comparison_footer(const Json& record) {
  bool paired = false, samples = false, short_interval = false;
  for (const Json& point : record.at("points")) {
    (point.at("design") == "paired" ? paired : samples) = true;
    const Json& confidence = point.at("interval_confidence");
    short_interval = short_interval || (!confidence.is_null() && confidence < 0.945);
  }
  std::vector<std::string> lines;
  if (paired)
    lines.push_back(
        "pairs: repeats of one pass through the sweep, or declared with --paired; exact sign-flip "
        "test of the mean log ratio.");
  if (samples) lines.push_back("two samples: exact permutation test of the mean log ratio.");
  lines.push_back(fmt::format(
      "Intervals hold what these tests do not refuse{}; p adjusted for {} comparisons (Holm); "
      "detectable: what is found with power {:.0f} % at {:.0f} %.",
      short_interval ? " (of 5 pairs 93.75 %)" : "", record.at("points").size(),
      100 * record.at("power").get<double>(), 100 * record.at("alpha").get<double>()));
  for (const Json& point : record.at("unmatched")) {
    std::vector<std::string> sets;
    for (const Json& set : point.at("measured_in")) sets.push_back(set.get<std::string>());
    lines.push_back(fmt::format("not compared: ranks {}{}, in {} but not in {}",
                                point.at("ranks").dump(), settings_text(point.at("settings")),
                                fmt::join(sets, ", "), point.at("missing_in").get<std::string>()));
  }
  for (const Json& set : record.at("sets"))
    for (const Json& why : set.at("left_out"))
      lines.push_back(fmt::format("left out of {}: {}", set.at("label").get<std::string>(),
                                  why.get<std::string>()));
  for (const Json& note : record.at("notes")) lines.push_back("note: " + note.get<std::string>());
  for (const Json& warning : record.at("warnings"))
    lines.push_back("warning: " + warning.get<std::string>());
  return lines;
}

}  // namespace

std::string comparison_table(const Json& record) {
  std::string text;
  for (std::size_t i = 1; i < record.at("sets").size(); ++i) {
    const std::string set = record.at("sets")[i].at("label");
    text +=
        comparison_title(record, set) + "\n\n" + text_table(comparison_rows(record, set)) + "\n";
  }
  for (const std::string& line : comparison_footer(record)) text += line + "\n";
  return text;
}

std::string comparison_markdown(const Json& record) {
  std::string text;
  for (std::size_t i = 1; i < record.at("sets").size(); ++i) {
    const std::string set = record.at("sets")[i].at("label");
    text += "**" + comparison_title(record, set) + "**\n\n" +
            markdown_table(comparison_rows(record, set)) + "\n";
  }
  for (const std::string& line : comparison_footer(record)) text += "- " + line + "\n";
  return text;
}

}  // namespace scalemark
