// Aligns, folds and splits tables, and draws bars.
#include "report/text_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "report/shown_text.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  return widths;
}

std::size_t width_of(const Rows& rows) {
  std::size_t all = 0;
  for (const std::size_t width : widths_of(rows)) all += width + 2;
  return all - 2;
}

std::string lay_out(const Rows& rows) {
  const auto widths = widths_of(rows);
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("{}{:>{}}", i ? "  " : "", row[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

/// Breaks a cell into lines of at most `width` at blanks. A longer word stays whole.
Row folded(const std::string& cell, std::size_t width) {
  Row lines(1);
  std::istringstream words(cell);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

/// Appends one row as several, each cell folded to its width. Cells of the header are aligned at
/// the bottom, so that titles stand directly on the table.
void append_folded(Rows& rows, const Row& row, const std::vector<std::size_t>& widths,
                   bool is_header) {
  std::vector<Row> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells.push_back(folded(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    Row& part = rows.emplace_back();
    for (const Row& cell : cells) {
      const std::size_t above = is_header ? height - cell.size() : 0;
      part.push_back(line >= above && line - above < cell.size() ? cell[line - above] : "");
    }
  }
}

/// Folds titles to the width of the values below them, and names of rows to at most a third of the
/// page.
Rows folded(const Rows& rows, std::size_t columns) {
  auto widths = widths_of({rows.begin() + (rows.size() > 1), rows.end()});
  widths.front() = std::min(widths.front(), columns / 3);
  Rows narrow;
  for (const Row& row : rows) append_folded(narrow, row, widths, &row == &rows.front());
  return narrow;
}

/// Returns the first column and as many of those from `begin` on as fit. `begin` becomes the next
/// column.
Rows next_columns(const Rows& rows, std::size_t& begin, std::size_t columns) {
  const auto widths = widths_of(rows);
  std::size_t end = begin, width = widths.front();
  while (end < widths.size() && (end == begin || width + 2 + widths[end] <= columns))
    width += 2 + widths[end++];
  Rows part;
  for (const Row& row : rows) {
    part.push_back({row.front()});
    part.back().insert(part.back().end(), row.begin() + static_cast<std::ptrdiff_t>(begin),
                       row.begin() + static_cast<std::ptrdiff_t>(end));
  }
  begin = end;
  // Lines that belong to a title or a name of another part are empty here.
  std::erase_if(part, [](const Row& row) {
    return std::ranges::all_of(row, [](const std::string& cell) { return cell.empty(); });
  });
  return part;
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::optional<std::size_t> columns) {
  if (!columns || width_of(rows) <= *columns) return lay_out(rows);
  const Rows narrow = folded(rows, *columns);
  if (width_of(narrow) <= *columns || narrow.front().size() < 3) return lay_out(narrow);
  std::string text;
  for (std::size_t next = 1; next < narrow.front().size();)
    text += (text.empty() ? "" : "\n") + lay_out(next_columns(narrow, next, *columns));
  return text;
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  return text_table(rows, output_columns());
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

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows cleaned(Rows rows, std::string (*clean)(std::string_view)) {
  for (auto& row : rows)
    for (std::string& cell : row) cell = clean(cell);
  return rows;
}

}  // namespace

std::string probability(const Known<double>& p) {
  if (!p) return kNone;
  return *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

Rows shown_rows(Rows rows) { return cleaned(std::move(rows), shown); }

Rows markdown_rows(Rows rows) { return cleaned(std::move(rows), markdown_text); }

namespace {

constexpr std::size_t kWidest = 50, kNarrowest = 8;
constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

/// Draws a bar of `cells` characters, and the mark of the ideal behind it where that is further.
std::string drawn(double cells, double ideal, bool blocks) {
  const auto whole = static_cast<std::size_t>(blocks ? cells : std::lround(cells));
  std::string text;
  for (std::size_t i = 0; i < whole; ++i) text += blocks ? "█" : "#";
  std::size_t length = whole;
  if (const auto part = static_cast<std::size_t>((cells - std::floor(cells)) * 8);
      blocks && part > 0) {
    text += kEighths[part];
    ++length;
  }
  const auto mark = static_cast<std::size_t>(std::lround(ideal));
  for (; length < mark; ++length)
    text += length + 1 == mark ? (blocks ? "│" : "|") : (blocks ? "·" : ".");
  return text;
}

/// Returns the width in characters, not in bytes.
std::size_t width_of(const std::string& utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string bars(const std::vector<Bar>& all, std::size_t columns, bool blocks) {
  std::size_t label = 0, text = 0;
  double most = 0;
  for (const Bar& bar : all) {
    label = std::max(label, bar.label.size());
    text = std::max(text, bar.text.size());
    most = std::max({most, bar.value, bar.ideal});
  }
  const std::size_t around = label + text + 4;
  const std::size_t room =
      columns > around + kNarrowest ? std::min(columns - around, kWidest) : kNarrowest;
  const double scale = most > 0 ? static_cast<double>(room) / most : 0;
  std::string lines;
  for (const Bar& bar : all) {
    const std::string plot = drawn(bar.value * scale, bar.ideal * scale, blocks);
    lines += fmt::format("{:>{}}  {}{}  {}\n", bar.label, label, plot,
                         std::string(room - std::min(room, width_of(plot)), ' '), bar.text);
  }
  return lines;
}

bool writes_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string locale = value;
    for (char& c : locale) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return locale.find("UTF-8") != locale.npos || locale.find("UTF8") != locale.npos;
  }
  return false;
}

}  // namespace scalemark
