// Aligned columns of plain text.
#pragma once

#include <string>
#include <vector>

namespace scalemark {

/// Rows of equal length, the first is the header; columns right-aligned, two spaces apart, no
/// trailing spaces. Every line ends with a newline.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// The same as a table of Markdown.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Four significant digits without an exponent: "139.6", "7.520", "12345". 0 gives "0".
/// `like`: the value whose magnitude decides the number of decimals, so that bounds match their
/// centre.
std::string four_digits(double value, double like);
std::string four_digits(double value);

}  // namespace scalemark
