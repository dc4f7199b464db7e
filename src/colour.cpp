// See colour.hpp.
#include "colour.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace scalemark {
namespace {

constexpr const char* kLent = "SMK_INTERNAL_COLOURS";  // "1", "2" or "12": descriptors

constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kGreen = "\x1b[32m",
                           kPlain = "\x1b[0m";

struct Beginning {
  std::string_view words, colour;
};
constexpr std::array kBeginnings{
    Beginning{"warning:", kYellow},     Beginning{"warn:", kYellow},
    Beginning{"fail:", kRed},           Beginning{"dip:", kYellow},
    Beginning{"verdict: fail", kRed},   Beginning{"verdict: warn", kYellow},
    Beginning{"verdict: pass", kGreen}, Beginning{"regressed", kRed},
    Beginning{"inconclusive", kYellow}, Beginning{"pass:", kGreen},
    Beginning{"too noisy:", kYellow}};

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

/// Of a launcher, which gives rank 0 a terminal of its own whatever becomes of what it writes.
bool is_rank() {
  return is_set("OMPI_COMM_WORLD_RANK") || is_set("PMIX_RANK") || is_set("PMI_RANK");
}

std::string coloured_line(std::string_view line) {
  for (const auto& [words, colour] : kBeginnings)
    if (line.starts_with(words))
      return std::string(colour) + std::string(words) + std::string(kPlain) +
             std::string(line.substr(words.size()));
  return std::string(line);
}

}  // namespace

bool has_colours(int descriptor) {
  const char* terminal = std::getenv("TERM");
  if (is_set("NO_COLOR") || !terminal || std::string_view(terminal) == "dumb") return false;
  if (const char* lent = std::getenv(kLent))
    return std::string_view(lent).find(static_cast<char>('0' + descriptor)) !=
           std::string_view::npos;
  return !is_rank() && isatty(descriptor) != 0;
}

void lend_colours() {
  std::string lent;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (has_colours(descriptor)) lent += static_cast<char>('0' + descriptor);
  setenv(kLent, lent.c_str(), 1);
}

std::string in_colour(std::string_view text, int descriptor) {
  if (!has_colours(descriptor)) return std::string(text);
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    all += coloured_line(text.substr(begin, end - begin));
    if (end < text.size()) all += '\n';
    begin = end + 1;
  }
  return all;
}

}  // namespace scalemark
