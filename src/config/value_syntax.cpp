// Parses and prints deliberate faults (--inject) and parses masks of CPUs (--cpu_masks).
#include "config/value_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

constexpr std::size_t kMostDigits = 1024 / 4;
constexpr std::int64_t kMostMaskRanks = 1024;  // as many as there may be CPUs

/// Returns the CPUs of a mask, ascending. Throws ConfigError without a place.
std::vector<int> cpus_of_mask(std::string_view mask) {
  if (mask.empty()) throw ConfigError("is empty");
  if (mask.starts_with("0x") || mask.starts_with("0X")) mask.remove_prefix(2);
  if (mask.empty() || mask.find_first_not_of("0123456789abcdefABCDEF") != mask.npos)
    throw ConfigError("is no hexadecimal number such as 0xff00");
  if (mask.size() > kMostDigits) throw ConfigError("has more than 1024 bits");
  std::vector<int> cpus;
  for (std::size_t place = 0; place < mask.size(); ++place) {
    const char* digit = mask.data() + mask.size() - 1 - place;
    unsigned bits = 0;
    std::from_chars(digit, digit + 1, bits, 16);
    for (int bit = 0; bit < 4; ++bit)
      if ((bits >> bit & 1) != 0) cpus.push_back(4 * static_cast<int>(place) + bit);
  }
  if (cpus.empty()) throw ConfigError("has no CPU");
  return cpus;
}

/// Cuts "*3" from the end of an entry and returns the number, or 1 where there is none.
std::int64_t take_count(std::string_view& entry) {
  const std::size_t star = entry.find('*');
  if (star == entry.npos) return 1;
  const auto count = parse_integer(entry.substr(star + 1));
  if (!count || *count < 1) throw ConfigError("needs behind its * a number of ranks");
  entry = entry.substr(0, star);
  return *count;
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

std::vector<std::vector<int>> parse_cpu_masks(std::string_view list) {
  std::vector<std::vector<int>> masks;
  for (int number = 1;; ++number) {
    const std::size_t comma = list.find(',');
    const std::string_view whole = list.substr(0, comma);
    std::string_view entry = whole;
    try {
      const std::int64_t count = take_count(entry);
      const std::vector<int> cpus = cpus_of_mask(entry);
      if (count > kMostMaskRanks - static_cast<std::int64_t>(masks.size()))
        throw ConfigError(fmt::format("makes more than {} ranks of a node", kMostMaskRanks));
      masks.insert(masks.end(), static_cast<std::size_t>(count), cpus);
    } catch (const ConfigError& error) {
      refuse_at("--cpu_masks", fmt::format("mask {} ({}) {}", number, quote(whole), error.what()));
    }
    if (comma == list.npos) return masks;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace scalemark
