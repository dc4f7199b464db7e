// Prints what `study` and `list studies` say.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/study/study_record.hpp"
#include "config/text.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Returns the value with as many decimals as `like` needs.
std::string number_words(double value, const std::string& unit, double like) {
  if (is_percent(unit)) return fmt::format("{:+.1f} %", value);
  if (unit == "share") return fmt::format("{:.1f} %", 100 * value);
  return four_digits(value, like);
}

std::string value_words(const Json& value, const std::string& unit) {
  if (value.is_string()) return shown(value.get<std::string>());
  if (!value.is_number()) return value.dump();
  const std::string number = number_words(value, unit, value);
  const bool bare = is_percent(unit) || unit == "share" || unit == "verdict";
  return bare ? number : number + (unit == "ratio" ? " x" : " " + shown(unit));
}

std::string published_words(const record::StudyFigure& figure) {
  const record::Published& published = figure.published;
  const auto words = [&](const Known<Json>& number) { return value_words(*number, figure.unit); };
  std::string text;
  if (published.value)
    text = words(published.value);
  else if (published.low && published.high)
    text = words(published.low) + " to " + words(published.high);
  else if (published.low)
    text = "over " + words(published.low);
  else if (published.high)
    text = "up to " + words(published.high);
  else if (figure.unit == "same")
    text = "no difference";
  else if (published.text)
    return shown(*published.text);
  else
    text = "no figure";
  return (published.about ? "about " : "") + text;
}

std::string measured_words(const record::StudyFigure& figure) {
  if (!figure.measured) return kNone;
  const Json& value = figure.measured->value;
  const auto& ci95 = figure.measured->ci95;
  if (!ci95 || !value.is_number()) return value_words(value, figure.unit);
  return fmt::format("{} [{}, {}]", value_words(value, figure.unit),
                     number_words(ci95->lo, figure.unit, value),
                     number_words(ci95->hi, figure.unit, value));
}

std::string difference_words(const Known<record::FigureDifference>& difference) {
  if (!difference) return kNone;
  return fmt::format("{:+.1f} {}", difference->amount,
                     difference->unit == "percent" ? "%" : "points");
}

std::string verdict_words(const record::StudyFigure& figure) {
  if (!figure.verdict) return kNone;
  return fmt::format("{}{} ({})", is_lone_value(figure) ? "one value: " : "",
                     to_string(*figure.verdict), shown(figure.expected.value_or("")));
}

/// Returns whether this profile reads the figure.
bool is_read(const record::StudyFigure& figure) { return figure.reason != kNotOfThisProfile; }

Rows figure_rows(const StudyResult& study) {
  Rows rows{{"figure", "published", "measured", "difference", "effect"}};
  for (const record::StudyFigure& figure : study.figures)
    if (is_read(figure))
      rows.push_back({shown(figure.name), published_words(figure), measured_words(figure),
                      difference_words(figure.difference), verdict_words(figure)});
  return rows;
}

std::string machine_words(const record::MeasuredOn& machine) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& text) {
    words.push_back(shown(text.substr(0, text.find(','))));
  };
  if (machine.cpu_model) add(*machine.cpu_model);
  if (machine.gpu && machine.gpu->is_string()) add(machine.gpu->get<std::string>());
  for (const auto* text : {&machine.virtualisation, &machine.mpi, &machine.nccl})
    if (*text) add(**text);
  return words.empty() ? "nothing was measured" : join(words, ", ");
}

std::string evidence_words(const std::string& evidence) {
  return evidence == "effect"     ? "The effect itself"
         : evidence == "stand_in" ? "A stand-in"
                                  : "Arithmetic";
}

/// Returns what stands below the table, one paragraph each.
std::vector<std::string> notes_of(const StudyResult& study) {
  std::vector<std::string> notes{
      "Published: " + shown(study.publication) + " On " + shown(study.published_on),
      "Measured on: " + machine_words(study.measured_on) + "; " + shown(study.differs),
      evidence_words(study.evidence) + ": " + shown(study.shows)};
  if (!study.not_stated.empty())
    notes.push_back("The publication does not state: " + shown(join(study.not_stated, "; ")));
  std::vector<std::string> further;
  for (const record::StudyFigure& figure : study.figures)
    if (!is_read(figure))
      further.push_back(fmt::format("{}: {}", shown(figure.name), published_words(figure)));
  if (!further.empty()) notes.push_back("Published too: " + join(further, "; "));
  for (const record::StudyFigure& figure : study.figures)
    if (!figure.measured && is_read(figure))
      notes.push_back(
          fmt::format("not measured: {}: {}", shown(figure.name), shown(figure.reason)));
  for (const std::string& warning : study.warnings) notes.push_back("warning: " + shown(warning));
  notes.push_back(
      "[ ]: 95 % interval, Student's t over repeats, paired where the figure is a ratio. effect: "
      "whether the whole interval is as expected.");
  return notes;
}

std::string title_of(const StudyResult& study) {
  return fmt::format("{} ({}, {}), {}", shown(study.title), study.profile, shown(study.site),
                     format_duration(study.wall_seconds));
}

Json profile_json(const StudyProfile& profile) {
  return {{"minutes", profile.minutes()},       {"ranks", profile.ranks},
          {"needs_root", profile.needs_root()}, {"needs_gpu", profile.needs_gpu()},
          {"evidence", profile.evidence},       {"shows", profile.shows}};
}

}  // namespace

std::string study_table(const StudyResult& study) {
  const std::size_t columns = output_columns().value_or(80);
  std::string text = wrapped(title_of(study), columns) + "\n" + text_table(figure_rows(study));
  text += "\n";
  for (const std::string& note : notes_of(study)) text += wrapped(note, columns, 2);
  return text;
}

std::string study_markdown(const StudyResult& study) {
  std::string text = fmt::format("**{}**\n\n{}\n", markdown_text(title_of(study)),
                                 markdown_table(markdown_rows(figure_rows(study))));
  for (const std::string& note : notes_of(study)) text += "- " + markdown_text(note) + "\n";
  return text;
}

std::string sites_table(const StudyResult& first, const StudyResult& second) {
  Rows rows{{"figure", "published", shown(first.site), shown(second.site), "difference"}};
  for (const record::StudyFigure& figure : first.figures) {
    const auto other = std::ranges::find(second.figures, figure.name, &record::StudyFigure::name);
    if (other == second.figures.end()) continue;
    const auto difference =
        figure_difference(figure.unit, number_of(figure.measured), number_of(other->measured));
    rows.push_back({shown(figure.name), published_words(figure), measured_words(figure),
                    measured_words(*other), difference_words(difference)});
  }
  return wrapped(fmt::format("{}: {} and {}", shown(first.title), shown(first.site),
                             shown(second.site)),
                 output_columns().value_or(80)) +
         "\n" + text_table(rows);
}

std::string studies_table(const std::vector<Study>& studies) {
  const std::size_t columns = output_columns().value_or(80);
  std::string text = "study (give its name to scalemark study)\n";
  for (const Study& study : studies) {
    text += study.name + "\n    " + wrapped(study.title, columns - 4, 4);
    for (const StudyProfile& profile : study.profiles)
      text += "    " + wrapped(fmt::format("{}: about {}, {}{}{}; {}{}", profile.name,
                                           format_duration(60 * profile.minutes()),
                                           counted(static_cast<std::size_t>(profile.ranks), "rank"),
                                           profile.needs_root() ? ", root" : "",
                                           profile.needs_gpu() ? ", GPU" : "",
                                           profile.evidence == "effect"     ? ""
                                           : profile.evidence == "stand_in" ? "a stand-in: "
                                                                            : "arithmetic: ",
                                           profile.shows),
                               columns - 4, 8);
  }
  return text;
}

Json studies_json(const std::vector<Study>& studies) {
  Json list = Json::array();
  for (const Study& study : studies) {
    list.push_back({{"name", study.name}, {"title", study.title}, {"profiles", Json::object()}});
    for (const StudyProfile& profile : study.profiles)
      list.back()["profiles"][profile.name] = profile_json(profile);
  }
  return list;
}

}  // namespace scalemark
