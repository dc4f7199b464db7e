// What `study` and `list studies` print.
#include <fmt/format.h>

#include <map>
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

/// `like`: as many decimals as that needs.
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

std::string published_words(const Json& figure) {
  const Json& published = figure.at("published");
  const std::string unit = figure.at("unit");
  const auto words = [&](const char* key) { return value_words(published.at(key), unit); };
  const bool low = !published.at("low").is_null(), high = !published.at("high").is_null();
  std::string text;
  if (!published.at("value").is_null())
    text = words("value");
  else if (low && high)
    text = words("low") + " to " + words("high");
  else if (low)
    text = "over " + words("low");
  else if (high)
    text = "up to " + words("high");
  else if (unit == "same")
    text = "no difference";
  else if (!published.at("text").is_null())
    return shown(published.at("text").get<std::string>());
  else
    text = "no figure";
  return (published.at("about") == true ? "about " : "") + text;
}

std::string measured_words(const Json& figure) {
  const Json& measured = figure.at("measured");
  if (measured.is_null()) return kNone;
  const std::string unit = figure.at("unit");
  const Json& value = measured.at("value");
  const Json& ci95 = measured.at("ci95");
  if (ci95.is_null() || !value.is_number()) return value_words(value, unit);
  return fmt::format("{} [{}, {}]", value_words(value, unit), number_words(ci95[0], unit, value),
                     number_words(ci95[1], unit, value));
}

std::string difference_words(const Json& difference) {
  if (difference.is_null()) return kNone;
  return fmt::format("{:+.1f} {}", difference.at("amount").get<double>(),
                     difference.at("unit") == "percent" ? "%" : "points");
}

std::string verdict_words(const Json& figure) {
  if (figure.at("verdict").is_null()) return kNone;
  return fmt::format("{} ({})", figure.at("verdict").get<std::string>(),
                     shown(figure.at("expected").get<std::string>()));
}

/// Null where it was not measured.
Json measured_value(const Json& figure) {
  const Json& measured = figure.at("measured");
  return measured.is_null() ? measured : measured.at("value");
}

/// One that this profile reads.
bool is_read(const Json& figure) { return figure.at("reason") != kNotOfThisProfile; }

Rows figure_rows(const Json& record) {
  Rows rows{{"figure", "published", "measured", "difference", "effect"}};
  for (const Json& figure : record.at("figures"))
    if (is_read(figure))
      rows.push_back({shown(figure.at("name").get<std::string>()), published_words(figure),
                      measured_words(figure), difference_words(figure.at("difference")),
                      verdict_words(figure)});
  return rows;
}

std::string list_words(const Json& list) {
  std::vector<std::string> words;
  for (const Json& word : list) words.push_back(shown(word.get<std::string>()));
  return join(words, "; ");
}

std::string machine_words(const Json& system) {
  std::vector<std::string> words;
  for (const char* key : {"cpu_model", "gpu", "virtualisation", "mpi", "nccl"})
    if (system.at(key).is_string()) {
      const std::string text = system.at(key);
      words.push_back(shown(text.substr(0, text.find(','))));
    }
  return words.empty() ? "nothing was measured" : join(words, ", ");
}

/// What stands below the table, a paragraph each.
std::vector<std::string> notes_of(const Json& record) {
  const auto text = [&](const char* key) { return shown(record.at(key).get<std::string>()); };
  std::vector<std::string> notes{
      "Published: " + text("publication") + " On " + text("published_on"),
      "Measured on: " + machine_words(record.at("measured_on")) + "; " + text("differs"),
      fmt::format("{}: {}",
                  record.at("evidence") == "effect"     ? "The effect itself"
                  : record.at("evidence") == "stand_in" ? "A stand-in"
                                                        : "Arithmetic",
                  text("shows"))};
  if (!record.at("not_stated").empty())
    notes.push_back("The publication does not state: " + list_words(record.at("not_stated")));
  std::vector<std::string> further;
  for (const Json& figure : record.at("figures"))
    if (!is_read(figure))
      further.push_back(fmt::format("{}: {}", shown(figure.at("name").get<std::string>()),
                                    published_words(figure)));
  if (!further.empty()) notes.push_back("Published too: " + join(further, "; "));
  for (const Json& figure : record.at("figures"))
    if (figure.at("measured").is_null() && is_read(figure))
      notes.push_back(fmt::format("not measured: {}: {}",
                                  shown(figure.at("name").get<std::string>()),
                                  shown(figure.at("reason").get<std::string>())));
  for (const Json& warning : record.at("warnings"))
    notes.push_back("warning: " + shown(warning.get<std::string>()));
  notes.push_back(
      "[ ]: 95 % interval, Student's t over repeats, paired where the figure is a ratio. effect: "
      "whether the whole interval is as expected.");
  return notes;
}

std::string title_of(const Json& record) {
  return fmt::format("{} ({}, {}), {}", shown(record.at("title").get<std::string>()),
                     record.at("profile").get<std::string>(),
                     shown(record.at("site").get<std::string>()),
                     format_duration(record.at("wall_seconds").get<double>()));
}

Json profile_json(const StudyProfile& profile) {
  return {{"minutes", profile.minutes()},       {"ranks", profile.ranks},
          {"needs_root", profile.needs_root()}, {"needs_gpu", profile.needs_gpu()},
          {"evidence", profile.evidence},       {"shows", profile.shows}};
}

}  // namespace

std::string study_table(const Json& record) {
  const std::size_t columns = output_columns().value_or(80);
  std::string text = wrapped(title_of(record), columns) + "\n" + text_table(figure_rows(record));
  text += "\n";
  for (const std::string& note : notes_of(record)) text += wrapped(note, columns, 2);
  return text;
}

std::string study_markdown(const Json& record) {
  std::string text = fmt::format("**{}**\n\n{}\n", markdown_text(title_of(record)),
                                 markdown_table(markdown_rows(figure_rows(record))));
  for (const std::string& note : notes_of(record)) text += "- " + markdown_text(note) + "\n";
  return text;
}

std::string sites_table(const Json& first, const Json& second) {
  const auto site = [](const Json& record) { return shown(record.at("site").get<std::string>()); };
  Rows rows{{"figure", "published", site(first), site(second), "difference"}};
  std::map<std::string, const Json*> others;
  for (const Json& figure : second.at("figures")) others[figure.at("name")] = &figure;
  for (const Json& figure : first.at("figures")) {
    const auto other = others.find(figure.at("name"));
    if (other == others.end()) continue;
    const Json difference = figure_difference(figure.at("unit"), measured_value(figure),
                                              measured_value(*other->second));
    rows.push_back({shown(figure.at("name").get<std::string>()), published_words(figure),
                    measured_words(figure), measured_words(*other->second),
                    difference_words(difference)});
  }
  return wrapped(fmt::format("{}: {} and {}", shown(first.at("title").get<std::string>()),
                             site(first), site(second)),
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
