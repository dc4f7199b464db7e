// See talk.hpp.
#include "talk.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "colour.hpp"
#include "event_lines.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kWarning = "warning: ";
std::atomic<bool> quiet = false;

void print_line(std::string_view prefix, std::string_view text) {
  if (uses_event_lines()) {
    const bool warning = text.starts_with(kWarning);
    if (warning) text.remove_prefix(kWarning.size());
    return write_event(warning ? "warning" : "message", {{"text", text}});
  }
  const std::string line = in_colour(std::string(prefix) + std::string(text), STDERR_FILENO) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void say(std::string_view line) {
  if (!quiet || line.starts_with(kWarning)) print_line("", line);
}
void note(std::string_view what) {
  if (!quiet) print_line("scalemark: ", what);
}
void tell(std::string_view what) { print_line("scalemark: ", what); }

void be_quiet() { quiet = true; }
bool is_quiet() { return quiet; }

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
