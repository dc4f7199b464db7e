// Aligned columns of plain text, and bars.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "record/known.hpp"

namespace scalemark {

/// A cell without a value.
inline const std::string kNone = "-";

/// "0.0412", "< 0.0001".
std::string probability(const Known<double>& p);

/// Rows of equal length, the first is the header; columns right-aligned, two spaces apart, no
/// trailing spaces. Every line ends with a newline. What is wider than `columns` gets titles of
/// several lines, and then stands in parts below each other, each with the first column.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::optional<std::size_t> columns);

/// As wide as what it is printed on.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// The same rows as a table in Markdown; cells are Markdown already.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Cells by shown().
std::vector<std::vector<std::string>> shown_rows(std::vector<std::vector<std::string>> rows);
/// Cells of plain text by markdown_text().
std::vector<std::vector<std::string>> markdown_rows(std::vector<std::vector<std::string>> rows);

struct Bar {
  std::string label;
  double value = 0;
  double ideal = 0;       ///< 0: none
  std::string text = {};  ///< after the bar
};

/// A line each, with a mark where its ideal is; at most `columns` wide. `blocks`: of Unicode, by
/// eighths of a character; else of ASCII.
std::string bars(const std::vector<Bar>& all, std::size_t columns, bool blocks);

/// Whether the locale of the environment (LC_ALL, LC_CTYPE, LANG) writes UTF-8.
bool writes_utf8();

}  // namespace scalemark
