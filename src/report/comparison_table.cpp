// Prints what the records of `compare` and `gate --history` say.
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

/// Makes text of a record safe for where it is shown: shown() or markdown_text().
using Cleaner = std::string (*)(std::string_view);

/// Holds a metric of the record with its points: the record's own metric, or one of `further`.
struct ComparedMetric {
  const Comparison& record;
  const std::string &metric, &better;
  const std::vector<record::ComparedPoint>& points;
  Cleaner clean;
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

std::string interval(const Known<Interval>& percent) {
  return percent ? fmt::format("[{:+.1f}, {:+.1f}] %", percent->lo, percent->hi) : kNone;
}

std::string detectable(const Known<double>& percent) {
  return percent ? fmt::format("{:.1f} %", *percent) : kNone;
}

const char* counted_repeats(const record::ComparedPoint& point) {
  return point.in_process() ? "repeats" : "launches";
}

std::string verdict(const record::ComparedPoint& point) {
  if (point.verdict != record::kTooFew) return point.verdict;
  return fmt::format("too few {} (n={}; {} needed)", counted_repeats(point),
                     std::min(point.base_repeats, point.repeats), point.repeats_needed);
}

std::string repeats(const record::ComparedPoint& point) {
  if (point.paired()) return fmt::format("{} pairs", point.repeats);
  return point.base_repeats == point.repeats
             ? std::to_string(point.repeats)
             : fmt::format("{}, {}", point.base_repeats, point.repeats);
}

std::vector<std::string> row(const ComparedMetric& metric, const record::ComparedPoint& point) {
  std::vector<std::string> cells{
      std::to_string(point.ranks) + settings_text(point.settings, metric.clean),
      repeats(point),
      four_digits(point.base_value),
      four_digits(point.value, point.base_value),
      fmt::format("{:+.1f} %", point.difference_percent),
      interval(point.interval_percent),
      probability(point.p_adjusted),
      detectable(point.minimum_detectable_percent)};
  if (metric.record.equivalent_percent) cells.push_back(probability(point.p_equivalent));
  cells.push_back(verdict(point));
  return cells;
}

/// Returns the points of one set under their header.
Rows comparison_rows(const ComparedMetric& metric, const std::string& set) {
  Rows rows{{"ranks", "n", metric.clean(metric.record.base), metric.clean(set), "difference",
             "95 % interval", "p (Holm)", "detectable"}};
  if (const auto& percent = metric.record.equivalent_percent)
    rows[0].push_back(fmt::format("p (within {:g} %)", *percent));
  rows[0].push_back("verdict");
  for (const record::ComparedPoint& point : metric.points)
    if (point.set == set) rows.push_back(row(metric, point));
  return rows;
}

std::string comparison_title(const ComparedMetric& metric, const std::string& set) {
  const std::string name = metric.clean(metric.metric);
  const auto first = std::ranges::find(metric.points, set, &record::ComparedPoint::set);
  const std::string unit = metric.clean(first->unit);
  const std::string what = name == "throughput" ? unit : fmt::format("{} ({})", name, unit);
  std::string text = fmt::format("{} against {}: {}, n {}", metric.clean(set),
                                 metric.clean(metric.record.base), what, counted_repeats(*first));
  if (metric.better == "lower") text += ", lower is better";
  return text;
}

std::vector<ComparedMetric> compared_metrics(const Comparison& record, Cleaner clean) {
  std::vector<ComparedMetric> metrics{{record, record.metric, record.better, record.points, clean}};
  if (record.further)
    for (const record::FurtherMetric& other : *record.further)
      metrics.push_back({record, other.metric, other.better, other.points, clean});
  return metrics;
}

/// Explains how the columns were made.
void explain_columns(std::vector<std::string>& lines, const Comparison& record) {
  bool paired = false, samples = false, short_interval = false;
  for (const ComparedMetric& metric : compared_metrics(record, shown))
    for (const record::ComparedPoint& point : metric.points) {
      (point.paired() ? paired : samples) = true;
      short_interval = short_interval || point.interval_confidence.value_or(1) < 0.945;
    }
  lines.push_back(
      "difference: of the mean log ratio, which sign, interval and verdict are of too; values: of "
      "each set alone, throughputs as units of all launches / their seconds, others as geometric "
      "means.");
  if (paired)
    lines.push_back(
        "pairs: repeats of one pass through the sweep, or declared with --paired; sign-flip test "
        "of the winsorised mean log ratio, with the paired t test.");
  if (samples)
    lines.push_back(
        "two samples: permutation test of the winsorised mean log ratio, with the tests of Mann "
        "and Whitney and of Welch.");
  lines.push_back(fmt::format(
      "Intervals hold what these tests do not refuse{}; p adjusted for {} (Holm); "
      "detectable: what is found with power {:.0f} % at {:.0f} %.",
      short_interval ? " (of 5 pairs 93.75 %)" : "", counted(record.points.size(), "comparison"),
      100 * record.power, 100 * record.alpha));
}

/// Says what equivalence would take, for each point that is neither different nor equivalent.
void explain_equivalence(std::vector<std::string>& lines, const ComparedMetric& metric) {
  for (const record::ComparedPoint& point : metric.points)
    if (point.repeats_for_equivalence)
      lines.push_back(fmt::format(
          "{}, ranks {}{}: neither different nor equivalent within {:g} %; were there no "
          "difference, {} {}{} would show it in {:.0f} % of such comparisons",
          metric.clean(point.set), point.ranks, settings_text(point.settings, metric.clean),
          *metric.record.equivalent_percent, *point.repeats_for_equivalence,
          point.paired() ? "pairs" : counted_repeats(point), point.paired() ? "" : " of each",
          100 * metric.record.power));
}

/// Returns the sentences below the tables.
std::vector<std::string> comparison_footer(const Comparison& record, Cleaner clean) {
  std::vector<std::string> lines;
  explain_columns(lines, record);
  for (const ComparedMetric& metric : compared_metrics(record, clean))
    if (record.equivalent_percent) explain_equivalence(lines, metric);
  for (const record::UnmatchedPoint& point : record.unmatched) {
    std::vector<std::string> sets;
    for (const std::string& set : point.measured_in) sets.push_back(clean(set));
    lines.push_back(fmt::format("not compared: ranks {}{}, in {} but not in {}", point.ranks,
                                settings_text(point.settings, clean), fmt::join(sets, ", "),
                                clean(point.missing_in)));
  }
  for (const record::ComparedSet& set : record.sets)
    for (const std::string& why : set.left_out)
      lines.push_back(fmt::format("left out of {}: {}", clean(set.label), clean(why)));
  for (const std::string& changed : finding_sentences(record.findings, "compared"))
    lines.push_back("changed: " + clean(changed));
  for (const std::string& note : record.notes) lines.push_back("note: " + clean(note));
  for (const std::string& warning : record.warnings) lines.push_back("warning: " + clean(warning));
  return lines;
}

/// Joins `show(title, rows)` of each metric and each set except the base.
template <typename Show>
std::string comparison_tables(const Comparison& record, Cleaner clean, Show show) {
  std::string text;
  for (const ComparedMetric& metric : compared_metrics(record, clean))
    for (std::size_t i = 1; i < record.sets.size(); ++i) {
      const std::string& set = record.sets[i].label;
      if (const Rows rows = comparison_rows(metric, set); rows.size() > 1)
        text += show(comparison_title(metric, set), rows);
    }
  return text;
}

}  // namespace

std::string comparison_table(const Comparison& record) {
  std::string text =
      comparison_tables(record, shown, [](const std::string& title, const Rows& rows) {
        return title + "\n\n" + text_table(rows) + "\n";
      });
  for (const std::string& line : comparison_footer(record, shown)) text += line + "\n";
  return text;
}

std::string comparison_markdown(const Comparison& record) {
  std::string text =
      comparison_tables(record, markdown_text, [](const std::string& title, const Rows& rows) {
        return "**" + title + "**\n\n" + markdown_table(rows) + "\n";
      });
  for (const std::string& line : comparison_footer(record, markdown_text))
    text += "- " + line + "\n";
  return text;
}

namespace {

std::string text_of(const record::HistoryChange& change) {
  std::string text = change.point ? *change.point + ": " : "";
  text += fmt::format("{:+.1f} % (p = {:.4f})", change.change_percent, change.p);
  if (!change.until || !change.kind) return text;
  return fmt::format("{}, {} until {}", text, to_string(*change.kind), *change.until);
}

std::string changes_at(const HistoryResult& record, const std::string& label) {
  std::vector<std::string> all;
  for (const record::HistoryChange& change : record.changes)
    if (change.at == label) all.push_back(text_of(change));
  return all.empty() ? kNone : fmt::format("{}", fmt::join(all, "; "));
}

/// "ranks 1 (-10.1 %), ranks 2 (-8.3 %)".
std::string points_to_blame(const record::NewestSet& newest) {
  std::vector<std::string> all;
  for (const record::JudgedPoint& point : newest.points)
    if (point.regressed)
      all.push_back(fmt::format("ranks {}{} ({:+.1f} %)", point.ranks,
                                settings_text(point.settings, shown), -point.slowdown_percent));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string newest_line(const record::NewestSet& newest, double alpha) {
  std::string text = fmt::format("newest set {}: {}", newest.set, to_string(newest.verdict));
  if (!newest.slowdown_percent || !newest.since) return text + ": " + newest.slowdown_percent.why();
  text += fmt::format(", {:+.1f} % against the level since {} ({})", 0 - *newest.slowdown_percent,
                      *newest.since, counted(newest.sets, "set"));
  if (const auto& interval = newest.interval_percent)
    text += fmt::format(", 95 % [{:+.1f}, {:+.1f}] %", 0 - interval->hi, 0 - interval->lo);
  text += fmt::format(", p = {:.4f} at {:g}", newest.p.value_or(1), alpha);
  if (const std::string blamed = points_to_blame(newest); !blamed.empty())
    text += "; slower: " + blamed;
  if (newest.verdict != GateVerdict::inconclusive) return text;
  return text + fmt::format("; {:.1f} % would be found", newest.detectable_percent.value_or(0));
}

Rows history_rows(const HistoryResult& record) {
  Rows rows{{"set", "launches", "relative rate", "change of level"}};
  for (const record::HistorySet& set : record.sets)
    rows.push_back({set.label, std::to_string(set.records.size()),
                    fmt::format("{:.4f}", set.relative_rate), changes_at(record, set.label)});
  return rows;
}

std::string what_was_found(const HistoryResult& record) {
  if (record.drift)
    return fmt::format("drift of {:+.1f} % from the first set to the last (p = {:.4f}), no step",
                       record.drift->change_percent, record.drift->p);
  return record.changes.empty() ? "no change of level shown" : "changes of level";
}

/// Returns text like "1 % 12 sets, 2 % 8, 5 % 6, 10 % 6".
std::string sets_needed(const std::vector<record::SetsNeeded>& needed) {
  std::string text;
  for (const record::SetsNeeded& one : needed)
    text += fmt::format("{}{:g} % {}", text.empty() ? "" : ", ", one.change_percent,
                        one.sets ? std::to_string(*one.sets) : "more than 40");
  return text;
}

std::string noise_line(const HistoryResult& record) {
  const auto& launches = record.launch_noise_percent;
  return fmt::format(
      "sets of one level differ by {:.2f} %{}; a step of {:.1f} % in the middle of {} sets is "
      "found in 80 % of such rows. Sets that a step needs: {}.",
      record.set_noise_percent.value_or(0),
      launches ? fmt::format(" (their launches make {:.2f} %)", *launches) : "",
      record.detectable_percent.value_or(0), record.sets.size(),
      sets_needed(record.sets_needed.value_or({})));
}

std::vector<std::string> history_footer(const HistoryResult& record) {
  std::vector<std::string> lines;
  if (record.newest) lines.push_back(newest_line(*record.newest, record.alpha));
  lines.insert(lines.end(),
               {fmt::format("{} over {}; advice: sets measured one after the other carry the "
                            "machine's drift. scalemark gate PLAN --base --new decides.",
                            what_was_found(record), counted(record.points, "common point")),
                noise_line(record)});
  for (const auto* sentences : {&record.notes, &record.warnings})
    lines.insert(lines.end(), sentences->begin(), sentences->end());
  return lines;
}

}  // namespace

std::string history_table(const HistoryResult& record) {
  std::string text = text_table(shown_rows(history_rows(record))) + "\n";
  for (const std::string& line : history_footer(record)) text += shown(line) + "\n";
  return text;
}

std::string history_markdown(const HistoryResult& record) {
  std::string text = markdown_table(markdown_rows(history_rows(record))) + "\n";
  for (const std::string& line : history_footer(record)) text += "- " + markdown_text(line) + "\n";
  return text + "\n";
}

std::string history_annotation(const HistoryResult& record) {
  if (!record.newest) return "";
  return annotation(record.newest->verdict, shown(newest_line(*record.newest, record.alpha)));
}

}  // namespace scalemark
