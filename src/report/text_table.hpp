// Aligned columns of plain text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// A cell without a value.
inline const std::string kNone = "-";

/// Rows of equal length, the first is the header; columns right-aligned, two spaces apart, no
/// trailing spaces. Every line ends with a newline. What is wider than `columns` gets titles of
/// several lines, and then stands in parts below each other, each with the first column.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::optional<std::size_t> columns);

/// As wide as what it is printed on.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// The same rows as a table in Markdown; cells are Markdown already.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Cells of plain text by markdown_text().
std::vector<std::vector<std::string>> markdown_rows(std::vector<std::vector<std::string>> rows);

}  // namespace scalemark
