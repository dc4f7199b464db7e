// Implements the readers of text files that the rest of the room shares.
#include "platform/sources.hpp"

#include <charconv>
#include <cstdlib>
#include <fstream>

namespace scalemark {
namespace {
constexpr std::size_t kMaximumBytes = 1 << 20;
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}
}  // namespace

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMaximumBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  // Some attributes, such as `speed`, can be opened but not read.
  if (text.empty() && !file.eof()) return std::nullopt;
  const auto end = text.find_last_not_of(kSpace);
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

std::optional<std::string> line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) {
      std::string_view rest = line.substr(key.size());
      const auto skipped = rest.find_first_not_of(" \t");
      const bool separated = skipped == std::string_view::npos || skipped > 0 ||
                             rest[skipped] == ':' || rest[skipped] == '=';
      if (separated) {
        rest = trim(rest);
        if (!rest.empty() && (rest.front() == ':' || rest.front() == '=')) rest.remove_prefix(1);
        return std::string(trim(rest));
      }
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::optional<double> to_number(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace scalemark
