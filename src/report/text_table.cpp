// See text_table.hpp.
#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/shown_text.hpp"

namespace scalemark {

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("{}{:>{}}", i ? "  " : "", row[i], widths[i]);
    text += '\n';
  }
  return text;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i > 0) continue;
    for (std::size_t column = 0; column < rows[i].size(); ++column) text += "| --- ";
    text += "|\n";
  }
  return text;
}

std::vector<std::vector<std::string>> markdown_rows(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows)
    for (std::string& cell : row) cell = markdown_text(cell);
  return rows;
}

}  // namespace scalemark
