// The verdict of a gate for people, for CI servers and beside a commit.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string text(const Json& record, const char* key) { return record.at(key).get<std::string>(); }

bool has_verdict(const Json& record) { return record.at("verdict").is_string(); }

std::string label(const Json& record, std::size_t set) {
  return text(record["sets"][set], "label");
}

/// "5.2 % slower", "0.3 % faster".
std::string change(double slowdown_percent) {
  return fmt::format("{:.1f} % {}", std::abs(slowdown_percent),
                     slowdown_percent < 0 ? "faster" : "slower");
}

std::string p_text(const Json& p) {
  if (p.is_null()) return "-";
  return p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", p.get<double>());
}

const char* repeats_unit(const Json& record) {
  return record["design"].at("mode") == "samples" ? "launches of each" : "pairs";
}

std::string repeats_text(const Json& record) {
  return fmt::format("{} {}", record.at("repeats").dump(), repeats_unit(record));
}

/// What the verdict means in numbers.
std::string meaning(const Json& record) {
  const Json& design = record.at("design");
  if (record["verdict"] == "regressed") return "";
  if (record["verdict"] == "pass")
    return fmt::format("; a slowdown of {:g} % is excluded",
                       design.at("excluded_percent").get<double>());
  const Json& detectable = record.at("detectable_percent");
  std::string all = detectable.is_null() ? std::string("; so few repeats can show nothing")
                                         : fmt::format("; found would be {:.1f} % or more",
                                                       detectable.get<double>());
  if (const Json& enough = record.at("repeats_for_pass"); !enough.is_null())
    all += fmt::format("; to exclude {:g} % at this noise takes about {} {}",
                       design.at("excluded_percent").get<double>(), enough.dump(),
                       repeats_unit(record));
  return all;
}

std::string point_name(const Json& point) {
  std::string name = "ranks=" + point.at("ranks").dump();
  for (const auto& [key, value] : point.at("settings").items())
    name += fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
  return name;
}

std::string point_sentence(const Json& point) {
  const double base = point.at("base_value");
  return fmt::format("{} {} against {}: {}", four_digits(point.at("value").get<double>(), base),
                     text(point, "unit"), four_digits(base),
                     change(point.at("slowdown_percent").get<double>()));
}

Rows verdict_rows(const Json& record) {
  Rows rows{{"point", label(record, 0), label(record, 1), "unit", "difference", "p (adjusted)",
             "verdict"}};
  for (const Json& point : record.at("points")) {
    const double base = point.at("base_value");
    rows.push_back({point_name(point), four_digits(base),
                    four_digits(point.at("value").get<double>(), base), text(point, "unit"),
                    change(point.at("slowdown_percent").get<double>()),
                    p_text(point.at("p_adjusted")), point.at("regressed") ? "regressed" : "-"});
  }
  return rows;
}

/// Sentences below the table.
std::vector<std::string> verdict_footer(const Json& record) {
  std::vector<std::string> lines;
  const Json& launches = record.at("launches");
  if (!launches.is_null())
    lines.push_back(fmt::format("{} of at most {} launches, {:.0f} s",
                                launches.at("launched").dump(), launches.at("most").dump(),
                                launches.at("seconds").get<double>()));
  if (!has_verdict(record)) return lines;
  const Json& design = record.at("design");
  lines.push_back(fmt::format(
      "without a slowdown at most {:g} % of such gates say regressed; threshold {:g} %",
      100 * design.at("alpha").get<double>(), design.at("threshold_percent").get<double>()));
  if (!design.at("looks").is_null())
    lines.push_back("interval and p are of these pairs, and do not allow for the looks");
  for (const Json& set : record.at("sets"))
    for (const Json& why : set.at("left_out"))
      lines.push_back(
          fmt::format("left out of {}: {}", text(set, "label"), why.get<std::string>()));
  for (const std::string& changed : finding_sentences(record, "gate"))
    lines.push_back("changed: " + changed);
  for (const Json& note : record.at("notes")) lines.push_back("note: " + note.get<std::string>());
  for (const Json& warning : record.at("warnings"))
    lines.push_back("warning: " + warning.get<std::string>());
  return lines;
}

std::string test_case(const std::string& name, const std::string& outcome) {
  return fmt::format("    <testcase classname=\"scalemark.gate\" name=\"{}\">{}</testcase>\n",
                     xml_text(name), outcome);
}

std::string outcome_element(const char* element, const std::string& message) {
  return fmt::format("<{} message=\"{}\"/>", element, xml_text(message));
}

/// A percent sign begins a code, a line feed ends the command.
std::string escaped_command(const std::string& raw) {
  std::string safe;
  for (const char c : raw) {
    if (c == '%')
      safe += "%25";
    else if (c == '\n')
      safe += "%0A";
    else
      safe += c;
  }
  return safe;
}

/// Of a record that was cleaned.
std::string sentence_of(const Json& record) {
  if (!has_verdict(record))
    return fmt::format("no verdict ({}): {}", text(record, "status"), text(record, "reason"));
  std::string interval;
  if (const Json& bounds = record.at("interval_percent"); !bounds.is_null())
    interval = fmt::format(" [{:.1f}, {:.1f}]", bounds[0].get<double>(), bounds[1].get<double>());
  const double slowdown = record.at("slowdown_percent");
  return fmt::format("{}: {} is {:.1f} %{} slower than {} ({}, p = {}){}", text(record, "verdict"),
                     label(record, 1), slowdown, interval, label(record, 0), repeats_text(record),
                     p_text(record.at("p")), meaning(record));
}

}  // namespace

std::string verdict_sentence(const Json& record) { return sentence_of(shown_record(record)); }

std::string verdict_table(const Json& raw) {
  const Json record = shown_record(raw);
  std::string all = sentence_of(record) + "\n";
  if (has_verdict(record)) all += "\n" + text_table(verdict_rows(record)) + "\n";
  for (const std::string& line : verdict_footer(record)) all += line + "\n";
  return all;
}

std::string verdict_markdown(const Json& raw) {
  const Json record = shown_record(raw);
  std::string all = "**scalemark gate: " + markdown_text(sentence_of(record)) + "**\n\n";
  if (has_verdict(record)) all += markdown_table(markdown_rows(verdict_rows(record))) + "\n";
  for (const std::string& line : verdict_footer(record)) all += "- " + markdown_text(line) + "\n";
  return all + "\n";
}

std::string verdict_junit(const Json& raw) {
  const Json record = shown_record(raw);
  const std::string sentence = sentence_of(record);
  const std::string verdict = has_verdict(record) ? text(record, "verdict") : "error";
  int failures = verdict == "regressed", skipped = verdict == "inconclusive";
  std::string cases =
      test_case("all points", verdict == "regressed"      ? outcome_element("failure", sentence)
                              : verdict == "inconclusive" ? outcome_element("skipped", sentence)
                              : verdict == "error"        ? outcome_element("error", sentence)
                                                          : "");
  int tests = 1;
  if (has_verdict(record))
    for (const Json& point : record.at("points")) {
      ++tests;
      failures += point.at("regressed") ? 1 : 0;
      cases +=
          test_case(point_name(point),
                    point.at("regressed") ? outcome_element("failure", point_sentence(point)) : "");
    }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"scalemark "
      "gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n{}"
      "  </testsuite>\n</testsuites>\n",
      tests, failures, verdict == "error" ? 1 : 0, skipped, text(record, "created_at"), cases);
}

std::string verdict_annotation(const Json& raw) {
  const Json record = shown_record(raw);
  const std::string verdict = has_verdict(record) ? text(record, "verdict") : "error";
  const char* level = verdict == "pass"           ? "notice"
                      : verdict == "inconclusive" ? "warning"
                                                  : "error";
  std::string message = sentence_of(record);
  if (verdict == "regressed")
    for (const Json& point : record.at("points"))
      if (point.at("regressed")) message += "\n" + point_name(point) + ": " + point_sentence(point);
  return fmt::format("::{} title=scalemark gate::{}\n", level, escaped_command(message));
}

}  // namespace scalemark
