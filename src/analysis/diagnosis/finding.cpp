// Puts the sentences of findings together, with the places of their numbers.
#include "analysis/diagnosis/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "streams.hpp"

namespace scalemark::diagnosis {
namespace {

constexpr std::string_view kNotThere = "\u2013";  // an en dash in place of a value

/// Counts the characters of a text in UTF-8, by the bytes that begin one.
std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string last_key(const std::string& pointer) { return pointer.substr(pointer.rfind('/') + 1); }

template <typename T>
Quote quote_of(const Reading<T>& reading, std::string text) {
  return {last_key(reading.pointer), std::move(text), *reading, reading.record, reading.pointer};
}

}  // namespace

std::string to_string(Tone tone) {
  return tone == Tone::good ? "good" : tone == Tone::note ? "note" : "bad";
}

std::string to_string(Certainty certainty) {
  return certainty == Certainty::sure ? "sure" : certainty == Certainty::likely ? "likely" : "hint";
}

void Sentence::add(Quote quote) {
  quote.begin = code_points(text_);
  text_ += quote.text;
  quotes_.push_back(std::move(quote));
}

void Sentence::add(const Sentence& other) {
  const std::size_t before = code_points(text_);
  for (Quote quote : other.quotes_) {
    quote.begin += before;
    quotes_.push_back(std::move(quote));
  }
  text_ += other.text_;
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }
std::string signed_percent(double percent) { return fmt::format("{:+.1f} %", percent); }
std::string milliseconds(double seconds) { return four_digits(1000 * seconds) + " ms"; }
std::string whole(double value) { return fmt::format("{:.0f}", value); }
std::string probability(double value) { return fmt::format("{:.2g}", value); }
std::string digits(double value) { return four_digits(value); }

Sentence quoted(const Number& number, Format format) {
  return number ? Sentence(quote_of(number, format(*number))) : Sentence(kNotThere);
}

Sentence quoted(const Bounds& bounds, Format format) {
  if (!bounds) return Sentence(kNotThere);
  return Sentence(
      quote_of(bounds, fmt::format("{} to {}", format((*bounds).lo), format((*bounds).hi))));
}

Sentence quoted(const Text& text) {
  return text ? Sentence(quote_of(text, *text)) : Sentence(kNotThere);
}

Quote computed(std::string name, double value, Format format, const Number& from) {
  return {std::move(name), format(value), value, from.record, from.pointer};
}

Sentence quoted_ranks(const Number& ranks) {
  return quoted(ranks, [](double n) { return fmt::format("{:.0f} rank{}", n, n == 1 ? "" : "s"); });
}

}  // namespace scalemark::diagnosis
