// See talk.hpp.
#include "talk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "event_lines.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kWarning = "warning: ";

void print_line(std::string_view prefix, std::string_view text) {
  if (uses_event_lines()) {
    const bool warning = text.starts_with(kWarning);
    if (warning) text.remove_prefix(kWarning.size());
    return write_event(warning ? "warning" : "message", {{"text", text}});
  }
  std::fprintf(stderr, "%.*s%.*s\n", static_cast<int>(prefix.size()), prefix.data(),
               static_cast<int>(text.size()), text.data());
}

}  // namespace

void say(std::string_view line) { print_line("", line); }
void tell(std::string_view what) { print_line("scalemark: ", what); }

std::string four_digits(double value, double like) {
  if (value == 0 || like == 0 || !std::isfinite(like)) return fmt::format("{}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(like))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - exponent, 0, 9));
}

std::string four_digits(double value) { return four_digits(value, value); }

std::string counted(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

}  // namespace scalemark
