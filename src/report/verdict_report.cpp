// Words the verdict of a gate for people, for CI servers and for a comment on a commit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

const std::string& label(const Verdict& verdict, std::size_t set) {
  return verdict.sets->at(set).label;
}

/// Returns text like "5.2 % slower" or "0.3 % faster".
std::string change(double slowdown_percent) {
  return fmt::format("{:.1f} % {}", std::abs(slowdown_percent),
                     slowdown_percent < 0 ? "faster" : "slower");
}

const char* repeats_unit(const Verdict& verdict) {
  return verdict.design->mode == GateMode::samples ? "launches of each" : "pairs";
}

/// Writes what is found at the least, with enough digits to be above 0.
std::string least_percent(double percent) {
  return percent < 0.05 ? fmt::format("{:.1g} % or more", percent)
                        : fmt::format("{:.1f} % or more", percent);
}

/// Says what the verdict means in numbers.
std::string meaning(const Verdict& verdict) {
  const double excluded = verdict.design->excluded_percent;
  if (verdict.verdict == GateVerdict::regressed) return "";
  if (verdict.verdict == GateVerdict::pass)
    return fmt::format("; a slowdown of {:g} % is excluded", excluded);
  std::string all = verdict.detectable_percent
                        ? "; found would be " + least_percent(*verdict.detectable_percent)
                        : "; so few repeats can show nothing";
  if (const auto& enough = verdict.repeats_for_pass)
    all += *enough > verdict.repeats.value_or(0)
               ? fmt::format("; to exclude {:g} % at this noise takes about {} {}", excluded,
                             *enough, repeats_unit(verdict))
               : fmt::format(
                     "; at this noise {} {} exclude {:g} % where there is no difference: "
                     "what was measured lies too near to it",
                     *enough, repeats_unit(verdict), excluded);
  return all;
}

std::string point_name(const record::JudgedPoint& point) {
  std::string name = fmt::format("ranks={}", point.ranks);
  for (const auto& [key, value] : point.settings.items())
    name += fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
  return name;
}

std::string point_sentence(const record::JudgedPoint& point) {
  return fmt::format("{} {} against {}: {}", four_digits(point.value, point.base_value), point.unit,
                     four_digits(point.base_value), change(point.slowdown_percent));
}

Rows verdict_rows(const Verdict& verdict) {
  Rows rows{{"point", label(verdict, 0), label(verdict, 1), "unit", "difference", "p (adjusted)",
             "verdict"}};
  for (const record::JudgedPoint& point : *verdict.points)
    rows.push_back({point_name(point), four_digits(point.base_value),
                    four_digits(point.value, point.base_value), point.unit,
                    change(point.slowdown_percent), probability(point.p_adjusted),
                    point.regressed ? "regressed" : kNone});
  return rows;
}

/// Returns the sentences below the table.
std::vector<std::string> verdict_footer(const Verdict& verdict) {
  std::vector<std::string> lines;
  if (const auto& launches = verdict.launches)
    lines.push_back(fmt::format("{} of at most {} launches, {:.0f} s", launches->launched,
                                launches->most, launches->seconds));
  if (!verdict.verdict) return lines;
  const record::GateRules& rules = *verdict.design;
  lines.push_back(
      fmt::format("without a slowdown at most {:g} % of such gates say regressed; threshold {:g} %",
                  100 * rules.alpha, rules.threshold_percent));
  const bool unlike = std::ranges::any_of(*verdict.points, [](const record::JudgedPoint& point) {
    constexpr double kPercent = 0.5;
    return std::abs(100 * (1 - point.value / point.base_value) - point.slowdown_percent) > kPercent;
  });
  if (unlike)
    lines.push_back(
        "rates are all units over all time; a difference is the centre of the launches' ratios, on "
        "which single slow launches weigh less");
  if (rules.looks)
    lines.push_back("interval and p are of these pairs, and do not allow for the looks");
  for (const record::ComparedSet& set : *verdict.sets)
    for (const std::string& why : set.left_out)
      lines.push_back(fmt::format("left out of {}: {}", set.label, why));
  for (const std::string& changed : finding_sentences(verdict.findings, "gate"))
    lines.push_back("changed: " + changed);
  for (const std::string& note : verdict.notes) lines.push_back("note: " + note);
  for (const std::string& warning : verdict.warnings) lines.push_back("warning: " + warning);
  return lines;
}

/// `seconds`: a `time` of JUnit; empty: unknown.
std::string test_case(const std::string& name, const std::string& seconds,
                      const std::string& outcome, const std::string& said) {
  return fmt::format(
      "    <testcase classname=\"scalemark.gate\" name=\"{}\"{}>{}<system-out>{}</system-out>"
      "</testcase>\n",
      xml_text(name), seconds, outcome, xml_text(said));
}

std::string outcome_element(const char* element, const std::string& message) {
  return fmt::format("<{} message=\"{}\"/>", element, xml_text(message));
}

/// Escapes text for a workflow command, in which a percent sign begins a code and a line feed ends
/// the command.
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

/// Returns the sentence of the verdict, which is not safe to show yet.
std::string sentence_of(const Verdict& verdict) {
  if (!verdict.verdict)
    return fmt::format("no verdict ({}): {}", to_string(verdict.status), verdict.reason);
  const double slower = verdict.slowdown_percent.value_or(0);
  // A change that is printed as 0 has no direction.
  const bool faster = slower <= -0.05;
  const auto bounds = [&](const Interval& of) {
    return faster ? fmt::format(" [{:.1f}, {:.1f}]", -of.hi, -of.lo)
                  : fmt::format(" [{:.1f}, {:.1f}]", of.lo, of.hi);
  };
  return fmt::format("{}: {} is {:.1f} %{} {} than {} ({} {}, p = {}){}",
                     to_string(*verdict.verdict), label(verdict, 1), faster ? -slower : slower,
                     verdict.interval_percent ? bounds(*verdict.interval_percent) : "",
                     faster ? "faster" : "slower", label(verdict, 0), verdict.repeats.value_or(0),
                     repeats_unit(verdict), probability(verdict.p), meaning(verdict));
}

std::string outcome_of(const Verdict& verdict, const std::string& sentence) {
  if (!verdict.verdict) return outcome_element("error", sentence);
  if (verdict.verdict == GateVerdict::regressed) return outcome_element("failure", sentence);
  return verdict.verdict == GateVerdict::pass ? "" : outcome_element("skipped", sentence);
}

/// The outcome of one point: only a pass of the gate is one of each of its points.
std::string outcome_of(const Verdict& verdict, const record::JudgedPoint& point) {
  if (point.regressed) return outcome_element("failure", shown(point_sentence(point)));
  return verdict.verdict == GateVerdict::pass
             ? ""
             : outcome_element("skipped", "no verdict of its own: " + shown(point_sentence(point)));
}

/// Returns the judged points, or none for a gate without a verdict.
std::vector<record::JudgedPoint> judged_points(const Verdict& verdict) {
  return verdict.points.value_or({});
}

}  // namespace

std::string verdict_sentence(const Verdict& verdict) { return shown(sentence_of(verdict)); }

std::string verdict_table(const Verdict& verdict) {
  std::string all = verdict_sentence(verdict) + "\n";
  if (verdict.verdict) all += "\n" + text_table(shown_rows(verdict_rows(verdict))) + "\n";
  for (const std::string& line : verdict_footer(verdict)) all += shown(line) + "\n";
  return all;
}

std::string verdict_markdown(const Verdict& verdict) {
  std::string all = "**scalemark gate: " + markdown_text(sentence_of(verdict)) + "**\n\n";
  if (verdict.verdict) all += markdown_table(markdown_rows(verdict_rows(verdict))) + "\n";
  for (const std::string& line : verdict_footer(verdict)) all += "- " + markdown_text(line) + "\n";
  return all + "\n";
}

std::string verdict_junit(const Verdict& verdict) {
  const auto points = judged_points(verdict);
  const auto failed = std::ranges::count_if(points, &record::JudgedPoint::regressed);
  const bool passed = verdict.verdict == GateVerdict::pass;
  const auto skipped = passed ? 0 : static_cast<std::ptrdiff_t>(points.size()) - failed;
  const std::string seconds =
      verdict.launches ? fmt::format(" time=\"{:.3f}\"", verdict.launches->seconds) : "";
  std::string cases =
      test_case("all points", seconds, outcome_of(verdict, verdict_sentence(verdict)),
                verdict_sentence(verdict));
  for (const record::JudgedPoint& point : points)
    cases += test_case(
        shown(point_name(point)), "", outcome_of(verdict, point),
        shown(fmt::format("{}, p = {}", point_sentence(point), probability(point.p_adjusted))));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"scalemark "
      "gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"{} timestamp=\"{}\">\n{}"
      "  </testsuite>\n</testsuites>\n",
      1 + points.size(), failed + (verdict.verdict == GateVerdict::regressed ? 1 : 0),
      verdict.verdict ? 0 : 1, skipped + (verdict.verdict == GateVerdict::inconclusive ? 1 : 0),
      seconds, verdict.created_at, cases);
}

std::string annotation(std::optional<GateVerdict> verdict, const std::string& message) {
  const char* level = verdict == GateVerdict::pass           ? "notice"
                      : verdict == GateVerdict::inconclusive ? "warning"
                                                             : "error";
  return fmt::format("::{} title=scalemark gate::{}\n", level, escaped_command(message));
}

std::string verdict_annotation(const Verdict& verdict) {
  std::string message = verdict_sentence(verdict);
  for (const record::JudgedPoint& point : judged_points(verdict))
    if (point.regressed) message += "\n" + shown(point_name(point) + ": " + point_sentence(point));
  return annotation(verdict.verdict ? std::optional(*verdict.verdict) : std::nullopt, message);
}

}  // namespace scalemark
