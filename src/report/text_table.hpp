// Formats aligned columns of plain text, Markdown tables, and bars.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "record/known.hpp"

namespace scalemark {

/// Is shown in a cell without a value.
inline const std::string kNone = "-";

/// Returns text like "0.0412" or "< 0.0001".
std::string probability(const Known<double>& p);

/// Formats rows of equal length, of which the first is the header. Columns are right-aligned and
/// two spaces apart, without trailing spaces. Every line ends with a newline. A table wider than
/// `columns` gets titles of several lines, and if that does not suffice it is split into parts
/// below each other, each with the first column.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::optional<std::size_t> columns);

/// Formats a table as wide as the terminal that it is printed on.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// Formats the rows as a table in Markdown. Cells must be Markdown already.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Applies shown() to every cell.
std::vector<std::vector<std::string>> shown_rows(std::vector<std::vector<std::string>> rows);
/// Makes Markdown of cells of plain text by markdown_text().
std::vector<std::vector<std::string>> markdown_rows(std::vector<std::vector<std::string>> rows);

struct Bar {
  std::string label;
  double value = 0;
  double ideal = 0;       ///< 0: none
  std::string text = {};  ///< after the bar
};

/// Draws a line per bar, with a mark at its ideal, at most `columns` wide. With `blocks` bars are
/// drawn with Unicode blocks, in eighths of a character, and otherwise in ASCII.
std::string bars(const std::vector<Bar>& all, std::size_t columns, bool blocks);

/// Returns whether the locale of the environment (LC_ALL, LC_CTYPE, LANG) writes UTF-8.
bool writes_utf8();

}  // namespace scalemark
