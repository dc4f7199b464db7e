// See history_table.hpp.
#include "report/history_table.hpp"

#include <fmt/format.h>

#include <vector>

#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

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
