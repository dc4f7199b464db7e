// Aligned columns of plain text.
#pragma once

#include <string>
#include <vector>

namespace scalemark {

/// A cell without a value.
inline const std::string kNone = "-";

/// Rows of equal length, the first is the header; columns right-aligned, two spaces apart, no
/// trailing spaces. Every line ends with a newline.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// The same rows as a table in Markdown; cells are Markdown already.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Cells of plain text by markdown_text().
std::vector<std::vector<std::string>> markdown_rows(std::vector<std::vector<std::string>> rows);

}  // namespace scalemark
