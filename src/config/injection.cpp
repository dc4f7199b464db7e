// See injection.hpp.
#include "config/injection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr double kLongestDelay = 3.6e6;  // an hour per step, milliseconds
constexpr double kLargest = 1e9;         // rank and step

std::int64_t field_number(std::string_view field, std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > kLargest)
    throw ConfigError(
        fmt::format("{} is {}, not a number from 0 to {:.0f}", field, quote(text), kLargest));
  return *number;
}

void set_field(Injection& injection, std::string_view part) {
  const std::size_t equals = part.find('=');
  const std::string field(part.substr(0, equals));
  const std::string_view text = equals == part.npos ? "" : part.substr(equals + 1);
  if (field == "rank") {
    injection.rank = field_number(field, text);
  } else if (field == "step") {
    injection.step = field_number(field, text);
  } else if (field == "milliseconds") {
    const auto number = parse_real(text);
    if (!number || *number <= 0 || *number > kLongestDelay)
      throw ConfigError(
          fmt::format("milliseconds is {}, not above 0 and up to {}", quote(text), kLongestDelay));
    injection.milliseconds = *number;
  } else {
    throw ConfigError(fmt::format("unknown field {}{}; legal: rank, step, milliseconds",
                                  quote(field),
                                  did_you_mean(field, {"rank", "step", "milliseconds"})));
  }
}

}  // namespace

const std::vector<std::string>& injection_kinds() {
  static const std::vector<std::string> kinds{
      "nan_loss", "corrupt_allreduce", "exit_before_init", "kill", "stop", "delay",
      "busy",     "device_fault"};
  return kinds;
}

Injection parse_injection(std::string_view text) {
  Injection injection;
  std::size_t colon = text.find(':');
  injection.kind = text.substr(0, colon);
  const auto& kinds = injection_kinds();
  if (std::find(kinds.begin(), kinds.end(), injection.kind) == kinds.end())
    throw ConfigError(fmt::format("unknown kind {}{}; legal: {}", quote(injection.kind),
                                  did_you_mean(injection.kind, kinds), join(kinds, ", ")));
  while (colon != text.npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    set_field(injection, text.substr(0, colon));
  }
  const bool timed = injection.kind == "delay" || injection.kind == "busy";
  if (timed != (injection.milliseconds > 0))
    throw ConfigError(
        "milliseconds belongs to delay and busy, and both need it: delay:milliseconds=50");
  return injection;
}

std::string to_string(const Injection& injection) {
  std::string text = injection.kind;
  if (injection.rank >= 0) text += fmt::format(":rank={}", injection.rank);
  if (injection.step > 0) text += fmt::format(":step={}", injection.step);
  if (injection.milliseconds > 0) text += fmt::format(":milliseconds={}", injection.milliseconds);
  return text;
}

}  // namespace scalemark
