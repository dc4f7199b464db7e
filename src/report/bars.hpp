// Small plots of text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace scalemark {

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
