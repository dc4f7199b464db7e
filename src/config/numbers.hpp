// Strict numbers: the whole text or nothing; no "1e3x", no "0x10", no overflow, no infinity.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scalemark {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Decimal digits with an optional minus; nullopt for anything else and beyond 64 bits.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

/// A finite decimal number, also as 1e-3; nullopt for anything else.
inline std::optional<double> parse_real(std::string_view text) {
  const auto number = parse_whole<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace scalemark
