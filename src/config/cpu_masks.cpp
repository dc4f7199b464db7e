// See cpu_masks.hpp.
#include "config/cpu_masks.hpp"

#include <fmt/format.h>

#include <charconv>

#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostDigits = 1024 / 4;
constexpr std::int64_t kMostMaskRanks = 1024;  // as many as there may be CPUs

/// Ascending. Throws ConfigError without a place.
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

/// Cuts "*3" from the end of an entry; 1 where it says none.
std::int64_t take_count(std::string_view& entry) {
  const std::size_t star = entry.find('*');
  if (star == entry.npos) return 1;
  const auto count = parse_integer(entry.substr(star + 1));
  if (!count || *count < 1) throw ConfigError("needs behind its * a number of ranks");
  entry = entry.substr(0, star);
  return *count;
}

}  // namespace

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
