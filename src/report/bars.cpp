// See bars.hpp.
#include "report/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace scalemark {
namespace {

constexpr std::size_t kWidest = 50, kNarrowest = 8;
constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

/// Of `cells` characters, the mark of the ideal behind it where that is further.
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

/// Characters, not bytes.
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
