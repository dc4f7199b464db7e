// See history_table.hpp.
#include "report/history_table.hpp"

#include <fmt/format.h>

#include <vector>

#include "report/text_table.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string change_at(const Json& record, const Json& label) {
  for (const Json& change : record.at("changes"))
    if (change.at("at") == label)
      return fmt::format("{:+.1f} % (p = {:.4f})", change.at("change_percent").get<double>(),
                         change.at("p").get<double>());
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

std::vector<std::string> history_footer(const Json& record) {
  std::vector<std::string> lines{fmt::format(
      "{} over {} common points; advice: sets measured one after the other carry the machine's "
      "drift. scalemark gate PLAN --base --new decides.",
      record.at("changes").empty() ? "no change of level shown" : "changes of level",
      record.at("points").dump())};
  for (const char* kind : {"notes", "warnings"})
    for (const Json& line : record.at(kind)) lines.push_back(line.get<std::string>());
  return lines;
}

}  // namespace

std::string history_table(const Json& record) {
  std::string text = text_table(history_rows(record)) + "\n";
  for (const std::string& line : history_footer(record)) text += line + "\n";
  return text;
}

std::string history_markdown(const Json& record) {
  std::string text = markdown_table(history_rows(record)) + "\n";
  for (const std::string& line : history_footer(record)) text += "- " + line + "\n";
  return text + "\n";
}

}  // namespace scalemark
