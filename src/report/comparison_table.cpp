// What `compare` and `gate --history` print: says what their records say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// What makes text of a record fit for where it is shown: shown() or markdown_text().
using Cleaner = std::string (*)(std::string_view);

/// A metric of the record with its points: the record itself, or an entry of `further`.
struct ComparedMetric {
  const Json& record;
  const Json& part;
  Cleaner clean;

  std::string text(const Json& value) const { return clean(value.get_ref<const std::string&>()); }
  bool asks_equivalence() const { return !record.at("equivalent_percent").is_null(); }
};

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "not set" : value.dump();
}

std::string settings_text(const Json& settings, Cleaner clean) {
  std::string text;
  for (const auto& [name, value] : settings.items())
    text += fmt::format(" {}={}", name, setting_text(value));
  return clean(text);
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

std::vector<std::string> row(const ComparedMetric& metric, const Json& point) {
  const double base = point.at("base_value");
  std::vector<std::string> cells{
      point.at("ranks").dump() + settings_text(point.at("settings"), metric.clean),
      repeats(point),
      four_digits(base),
      four_digits(point.at("value").get<double>(), base),
      signed_percent(point.at("difference_percent")),
      interval(point),
      probability(point.at("p_adjusted")),
      detectable(point)};
  if (metric.asks_equivalence()) cells.push_back(probability(point.at("p_equivalent")));
  cells.push_back(verdict(point));
  return cells;
}

/// The points of one set under their header.
Rows comparison_rows(const ComparedMetric& metric, const std::string& set) {
  Rows rows{{"ranks", "n", metric.text(metric.record.at("base")), metric.clean(set), "difference",
             "95 % interval", "p (Holm)", "detectable"}};
  if (metric.asks_equivalence())
    rows[0].push_back(
        fmt::format("p (within {:g} %)", metric.record.at("equivalent_percent").get<double>()));
  rows[0].push_back("verdict");
  for (const Json& point : metric.part.at("points"))
    if (point.at("set") == set) rows.push_back(row(metric, point));
  return rows;
}

std::string comparison_title(const ComparedMetric& metric, const std::string& set) {
  const std::string name = metric.text(metric.part.at("metric"));
  std::string unit, counts;
  for (const Json& point : metric.part.at("points"))
    if (unit.empty() && point.at("set") == set) {
      unit = metric.text(point.at("unit"));
      counts = counted_repeats(point);
    }
  const std::string what = name == "throughput" ? unit : fmt::format("{} ({})", name, unit);
  std::string text = fmt::format("{} against {}: {}, n {}", metric.clean(set),
                                 metric.text(metric.record.at("base")), what, counts);
  if (metric.part.at("better") == "lower") text += ", lower is better";
  return text;
}

std::vector<ComparedMetric> compared_metrics(const Json& record, Cleaner clean) {
  std::vector<ComparedMetric> metrics{{record, record, clean}};
  for (const Json& part : record.at("further")) metrics.push_back({record, part, clean});
  return metrics;
}

/// How the columns were made.
void explain_columns(std::vector<std::string>& lines, const Json& record) {
  bool paired = false, samples = false, short_interval = false;
  for (const ComparedMetric& metric : compared_metrics(record, shown))
    for (const Json& point : metric.part.at("points")) {
      (point.at("design") == "paired" ? paired : samples) = true;
      const Json& confidence = point.at("interval_confidence");
      short_interval = short_interval || (!confidence.is_null() && confidence < 0.945);
    }
  lines.push_back(
      "difference: of the mean log ratio, which sign, interval and verdict are of too; values: of "
      "each set alone, throughputs as units of all launches / their seconds, others as geometric "
      "means.");
  if (paired)
    lines.push_back(
        "pairs: repeats of one pass through the sweep, or declared with --paired; exact sign-flip "
        "test of the mean log ratio.");
  if (samples) lines.push_back("two samples: exact permutation test of the mean log ratio.");
  lines.push_back(
      fmt::format("Intervals hold what these tests do not refuse{}; p adjusted for {} (Holm); "
                  "detectable: what is found with power {:.0f} % at {:.0f} %.",
                  short_interval ? " (of 5 pairs 93.75 %)" : "",
                  counted(record.at("points").size(), "comparison"),
                  100 * record.at("power").get<double>(), 100 * record.at("alpha").get<double>()));
}

/// What equivalence would take, of each point that is neither different nor equivalent.
void explain_equivalence(std::vector<std::string>& lines, const ComparedMetric& metric) {
  for (const Json& point : metric.part.at("points"))
    if (!point.at("repeats_for_equivalence").is_null())
      lines.push_back(
          fmt::format("{}, ranks {}{}: neither different nor equivalent within {:g} %; were there "
                      "no difference, "
                      "{} {}{} would show it in {:.0f} % of such comparisons",
                      metric.text(point.at("set")), point.at("ranks").dump(),
                      settings_text(point.at("settings"), metric.clean),
                      metric.record.at("equivalent_percent").get<double>(),
                      point.at("repeats_for_equivalence").dump(),
                      point.at("design") == "paired" ? "pairs" : counted_repeats(point),
                      point.at("design") == "paired" ? "" : " of each",
                      100 * metric.record.at("power").get<double>()));
}

/// Sentences below the tables.
std::vector<std::string> comparison_footer(const Json& record, Cleaner clean) {
  const auto text = [&](const Json& value) { return clean(value.get_ref<const std::string&>()); };
  std::vector<std::string> lines;
  explain_columns(lines, record);
  for (const ComparedMetric& metric : compared_metrics(record, clean))
    if (metric.asks_equivalence()) explain_equivalence(lines, metric);
  for (const Json& point : record.at("unmatched")) {
    std::vector<std::string> sets;
    for (const Json& set : point.at("measured_in")) sets.push_back(text(set));
    lines.push_back(fmt::format("not compared: ranks {}{}, in {} but not in {}",
                                point.at("ranks").dump(),
                                settings_text(point.at("settings"), clean), fmt::join(sets, ", "),
                                text(point.at("missing_in"))));
  }
  for (const Json& set : record.at("sets"))
    for (const Json& why : set.at("left_out"))
      lines.push_back(fmt::format("left out of {}: {}", text(set.at("label")), text(why)));
  for (const std::string& changed : finding_sentences(record, "compared"))
    lines.push_back("changed: " + clean(changed));
  for (const Json& note : record.at("notes")) lines.push_back("note: " + text(note));
  for (const Json& warning : record.at("warnings")) lines.push_back("warning: " + text(warning));
  return lines;
}

}  // namespace

std::string comparison_table(const Json& comparison_record) {
  const Json& record = comparison_record;
  std::string text;
  for (const ComparedMetric& metric : compared_metrics(record, shown))
    for (std::size_t i = 1; i < record.at("sets").size(); ++i) {
      const std::string set = record.at("sets")[i].at("label");
      const Rows rows = comparison_rows(metric, set);
      if (rows.size() < 2) continue;
      text += comparison_title(metric, set) + "\n\n" + text_table(rows) + "\n";
    }
  for (const std::string& line : comparison_footer(record, shown)) text += line + "\n";
  return text;
}

std::string comparison_markdown(const Json& comparison_record) {
  const Json& record = comparison_record;
  std::string text;
  for (const ComparedMetric& metric : compared_metrics(record, markdown_text))
    for (std::size_t i = 1; i < record.at("sets").size(); ++i) {
      const std::string set = record.at("sets")[i].at("label");
      const Rows rows = comparison_rows(metric, set);
      if (rows.size() < 2) continue;
      text += "**" + comparison_title(metric, set) + "**\n\n" + markdown_table(rows) + "\n";
    }
  for (const std::string& line : comparison_footer(record, markdown_text))
    text += "- " + line + "\n";
  return text;
}

namespace {

std::string change_at(const Json& record, const Json& label) {
  for (const Json& change : record.at("changes")) {
    if (change.at("at") != label) continue;
    const std::string size =
        fmt::format("{:+.1f} % (p = {:.4f})", change.at("change_percent").get<double>(),
                    change.at("p").get<double>());
    if (change.at("until").is_null()) return size;
    return fmt::format("{}, {} until {}", size, change.at("kind").get<std::string>(),
                       change.at("until").get<std::string>());
  }
  return "-";
}

Rows history_rows(const Json& record) {
  Rows rows{{"set", "launches", "relative rate", "change of level"}};
  for (const Json& set : record.at("sets"))
    rows.push_back({set.at("label").get<std::string>(), std::to_string(set.at("records").size()),
                    fmt::format("{:.4f}", set.at("relative_rate").get<double>()),
                    change_at(record, set.at("label"))});
  return rows;
}

std::string what_was_found(const Json& record) {
  if (const Json& drift = record.at("drift"); !drift.is_null())
    return fmt::format("drift of {:+.1f} % from the first set to the last (p = {:.4f}), no step",
                       drift.at("change_percent").get<double>(), drift.at("p").get<double>());
  return record.at("changes").empty() ? "no change of level shown" : "changes of level";
}

/// "1 % 12 sets, 2 % 8, 5 % 6, 10 % 6".
std::string sets_needed(const Json& needed) {
  std::string text;
  for (const Json& one : needed)
    text +=
        fmt::format("{}{:g} % {}", text.empty() ? "" : ", ", one.at("change_percent").get<double>(),
                    one.at("sets").is_null() ? "more than 40" : one.at("sets").dump());
  return text;
}

std::string noise_line(const Json& record) {
  const Json& launches = record.at("launch_noise_percent");
  return fmt::format(
      "sets of one level differ by {:.2f} %{}; a step of {:.1f} % in the middle of {} sets is "
      "found in 80 % of such rows. Sets that a step needs: {}.",
      record.at("set_noise_percent").get<double>(),
      launches.is_null() ? ""
                         : fmt::format(" (their launches make {:.2f} %)", launches.get<double>()),
      record.at("detectable_percent").get<double>(), record.at("sets").size(),
      sets_needed(record.at("sets_needed")));
}

std::vector<std::string> history_footer(const Json& record) {
  std::vector<std::string> lines{
      fmt::format("{} over {}; advice: sets measured one after the other carry the "
                  "machine's drift. scalemark gate PLAN --base --new decides.",
                  what_was_found(record),
                  counted(record.at("points").get<std::size_t>(), "common point")),
      noise_line(record)};
  for (const char* kind : {"notes", "warnings"})
    for (const Json& line : record.at(kind)) lines.push_back(line.get<std::string>());
  return lines;
}

}  // namespace

std::string history_table(const Json& raw) {
  const Json record = shown_record(raw);
  std::string text = text_table(history_rows(record)) + "\n";
  for (const std::string& line : history_footer(record)) text += line + "\n";
  return text;
}

std::string history_markdown(const Json& raw) {
  const Json record = shown_record(raw);
  std::string text = markdown_table(markdown_rows(history_rows(record))) + "\n";
  for (const std::string& line : history_footer(record)) text += "- " + markdown_text(line) + "\n";
  return text + "\n";
}

}  // namespace scalemark
