// Helps with words: quotes what a user wrote, joins lists, finds the nearest name, parses strict
// numbers, and computes the digest of a text.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalemark {

/// Returns the text in double quotes, safe on a terminal: control characters and bytes that are not
/// UTF-8 are escaped, and it is cut after 60 bytes.
std::string quote(std::string_view text);

/// Joins words, such as "a, b, c" for the separator ", ".
std::string join(const std::vector<std::string>& words, std::string_view separator);

/// Returns the text without spaces at both ends.
std::string trimmed(std::string_view text);

/// Returns the name with `_` in place of `-`.
std::string canonical_name(std::string_view name);

/// Returns lines of at most `columns`, broken at blanks, all but the first indented; a longer word
/// has a line of its own. Ends with a newline.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent = 0);

/// Returns the candidate with the smallest edit distance (Levenshtein), where it is near enough to
/// be a misspelling: at most two edits, or a third of the longer word. Otherwise the result is
/// empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// Returns "; did you mean NAME?" with `prefix` before the name, or nothing where no name is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view prefix = "");

// The functions below parse numbers strictly: the whole text or nothing; no "1e3x", no "0x10", no
// overflow, no infinity.

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses decimal digits with an optional minus. Returns nullopt for anything else and beyond 64
/// bits.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

/// Parses a finite decimal number, also as 1e-3. Returns nullopt for anything else.
inline std::optional<double> parse_real(std::string_view text) {
  const auto number = parse_whole<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// The function below identifies configurations.

/// The SHA-256 of what comes in parts.
class Sha256 {
 public:
  /// Throws EnvironmentError where OpenSSL refuses.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view part);
  /// Returns it in hexadecimal digits, once.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the SHA-256 in hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace scalemark
