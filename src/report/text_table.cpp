// Right-aligned columns and numbers of four significant digits.
#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string four_digits(double value, double like) {
  if (value == 0 || like == 0 || !std::isfinite(like)) return fmt::format("{}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(like))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - exponent, 0, 9));
}

std::string four_digits(double value) { return four_digits(value, value); }

}  // namespace scalemark
