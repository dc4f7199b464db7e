// What a rule says of records: plain words, and the numbers in them with the place that each was
// read from.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark::diagnosis {

enum class Tone { good, note, bad };
enum class Certainty { sure, likely, hint };
std::string to_string(Tone tone);
std::string to_string(Certainty certainty);

/// A value of a record; unset: it is unknown there, or of another type than its schema says.
template <typename T>
struct Reading {
  std::optional<T> value;
  std::string record;   ///< id of the record that it was read from
  std::string pointer;  ///< JSON pointer in that record

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
};
using Number = Reading<double>;
using Bounds = Reading<Interval>;
using Text = Reading<std::string>;

/// A value as a sentence has it. Of one that is computed, `name` is its own, and the place is that
/// of a number that it is computed from.
struct Quote {
  std::string name;
  std::string text;
  std::variant<double, Interval, std::string> value;
  std::string record, pointer;
  std::size_t begin = 0;  ///< of `text` in the sentence, in code points
};

class Sentence {
 public:
  Sentence() = default;
  /// Each part is text, a Quote or another Sentence.
  template <typename... Parts>
  explicit Sentence(const Parts&... parts) {
    (add(parts), ...);
  }

  void add(std::string_view text) { text_ += text; }
  void add(Quote quote);
  void add(const Sentence& other);
  const std::string& text() const { return text_; }
  const std::vector<Quote>& quotes() const { return quotes_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
  std::vector<Quote> quotes_;  ///< in their order
};

/// How a number is written.
using Format = std::string (*)(double);
std::string percent(double fraction);
std::string signed_percent(double percent);  ///< of a number that is in percent already
std::string milliseconds(double seconds);
std::string whole(double value);
std::string probability(double value);
std::string digits(double value);  ///< four significant ones

/// The value in words, named by the last key of its pointer; a dash where there is none.
Sentence quoted(const Number& number, Format format = digits);
Sentence quoted(const Bounds& bounds, Format format = digits);
Sentence quoted(const Text& text);
/// Quotes a value that is computed from the one at `from`.
Quote computed(std::string name, double value, Format format, const Number& from);
/// "8 ranks".
Sentence quoted_ranks(const Number& ranks);

struct Finding {
  std::string rule = {};  ///< of all_rules()
  Tone tone = Tone::note;
  std::string about = {};  ///< the curve, run or set in words
  Sentence what = {}, why = {};
  std::vector<std::string> tries = {};
  Certainty sure = Certainty::hint;
  std::string because = {};  ///< what `sure` rests on
};
using Findings = std::vector<Finding>;

}  // namespace scalemark::diagnosis
