// How a struct stands in JSON, described once: a field for each key. From the same fields follow
// the writer, the reader, the schema, the table of docs/records.md, the columns of an export and
// the metrics of a comparison.
//
//   struct Roofline {
//     Known<double> gemm_flops, fraction;
//     static void describe(Fields& fields);
//   };
//   void Roofline::describe(Fields& fields) {
//     fields.add("gemm_flops", &Roofline::gemm_flops, "measured peak of all ranks,
//     FLOP/s").above(0); fields.add("fraction", &Roofline::fraction, "achieved / measured
//     peak").above(0);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json.hpp"

namespace scalemark {

class Shape;

/// What else a field says of its values; numbers in a list or behind "unknown" are meant alike.
struct Limits {
  std::optional<double> least, above, most, below;
  std::optional<std::size_t> fewest, longest;            ///< characters of a text, items of a list
  std::optional<std::size_t> each_fewest, each_longest;  ///< the same of what is in a list or map
  std::string_view pattern = {};                         ///< of a text, an ECMAScript expression
  std::string_view keys = {};                            ///< of a map, likewise
  Json words = nullptr;  ///< legal values, where not all of a type are
};

/// Whether a value is known, by the status of its record, or of the part of it that has one.
enum class Presence {
  any,
  when_ok,       ///< known in a record with status ok
  only_when_ok,  ///< known in a record with status ok, unknown (of a list: empty) in others
  when_all_ok,   ///< of a part with a status: known where that of the record is ok too, unknown
                 ///< where its own is not
  if_ok,         ///< unknown in a record with another status
  not_when_ok,   ///< unknown in a record with status ok
  when_partial,  ///< unknown but in records that were interrupted or timed out
};

/// The column of `scalemark export` that has a field's value; of an interval two, whose names end
/// with _low and _high.
struct Column {
  int place;         ///< in a row, from 0. It stays, so a new column takes the next after the last.
  const char* name;  ///< stays too
  const char* about;  ///< for docs/export.md; a unit where the name tells none
};

/// Which numbers of a metric are better. Of `faster`, fewer are, and sentences say "faster" and
/// "slower" instead of "lower" and "higher".
enum class Better { unsaid, higher, lower, faster };

/// What `scalemark compare --metric` calls a field's number.
struct ComparedNumber {
  const char* name;
  const char* unit;
  Better better;
  const char* per;  ///< key of the record that the number is divided by; empty: none
};

/// One key of an object.
class Field {
 public:
  Field(const char* key, std::size_t offset, const Shape& shape, const char* text)
      : key(key), text(text), offset(offset), shape(&shape) {}

  Field& unit(const char* name) { return of = name, *this; }
  /// Records of an older revision lack the key.
  Field& since(int revision) { return first_revision = revision, *this; }
  /// People may leave the key out: the member keeps its value.
  Field& optional() { return may_lack = true, *this; }
  Field& at_least(double number) { return limits.least = number, *this; }
  Field& above(double number) { return limits.above = number, *this; }
  Field& at_most(double number) { return limits.most = number, *this; }
  Field& below(double number) { return limits.below = number, *this; }
  Field& within(double least, double most) { return at_least(least).at_most(most); }
  Field& size(std::size_t fewest, std::size_t longest) {
    limits.longest = longest;
    return size(fewest);
  }
  Field& size(std::size_t fewest) { return limits.fewest = fewest, *this; }
  Field& each(std::size_t fewest, std::optional<std::size_t> longest = {}) {
    limits.each_fewest = fewest;
    limits.each_longest = longest;
    return *this;
  }
  Field& keys(std::string_view expression) { return limits.keys = expression, *this; }
  /// The same field for what is in its list or map.
  Field inner() const {
    Field field = *this;
    field.limits.fewest = limits.each_fewest;
    field.limits.longest = limits.each_longest;
    return field;
  }
  Field& filled() { return size(1); }
  Field& pattern(std::string_view expression) { return limits.pattern = expression, *this; }
  Field& one_of(Json words) { return limits.words = std::move(words), *this; }
  /// Of any JSON: only of these types of JSON Schema.
  Field& types(Json names) { return json_types = std::move(names), *this; }
  Field& object() { return types({"object"}); }
  Field& known(Presence when) { return presence = when, *this; }
  /// Unknown where the text of another key of its object is `word`; `known_else`: known elsewhere.
  Field& unknown_where(const char* other, const char* word, bool known_else = false) {
    unknown_by = other;
    unknown_word = word;
    known_elsewhere = known_else;
    return *this;
  }
  /// Numbers of a list that are not finite are null, for this reason.
  Field& or_null(const char* reason) { return null_numbers = reason, *this; }
  /// A statistic that rules of preflight may judge, by its key.
  Field& better(Better way) { return better_way = way, *this; }
  Field& otherwise(const char* reason) { return unknown = reason, *this; }
  Field& column(int place, const char* name, const char* about = "") {
    exported = Column{place, name, about};
    return *this;
  }
  Field& metric(const char* name, const char* unit, Better better, const char* per = "") {
    compared = ComparedNumber{name, unit, better, per};
    return *this;
  }

  const char* key;
  const char* text;                    ///< what it means, for people
  const char* of = "";                 ///< unit
  const char* null_numbers = nullptr;  ///< why numbers of a list may be null
  const char* unknown = "";            ///< why a value is unknown that gives no reason itself
  const char* unknown_by = nullptr;    ///< see unknown_where()
  const char* unknown_word = "";
  bool known_elsewhere = false;
  std::size_t offset;  ///< of the member in its struct, bytes
  const Shape* shape;
  Limits limits;
  int first_revision = 1;
  bool may_lack = false;
  Presence presence = Presence::any;
  Json json_types = nullptr;
  Better better_way = Better::unsaid;
  std::optional<Column> exported;
  std::optional<ComparedNumber> compared;
};

template <typename T>
const Shape& shape_of();

/// Of a member in its struct, bytes.
template <typename T, typename Member>
std::size_t offset_of(Member T::*member) {
  static const T sample{};
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&(sample.*member)) -
                                  reinterpret_cast<const char*>(&sample));
}

/// The keys of an object in the order in which they are written.
class Fields {
 public:
  template <typename T, typename Member>
  Field& add(const char* key, Member T::*member, const char* text = "") {
    return fields_.emplace_back(key, offset_of(member), shape_of<Member>(), text);
  }
  /// Of a member of a member.
  template <typename T, typename Part, typename Member>
  Field& add(const char* key, Part T::*part, Member Part::*member, const char* text = "") {
    const std::size_t offset = offset_of(part) + offset_of(member);
    return fields_.emplace_back(key, offset, shape_of<Member>(), text);
  }
  /// Of these keys, which people may leave out, an object has one and no other.
  void exactly_one_of(std::vector<std::string> keys) { alternatives_ = std::move(keys); }
  const std::vector<std::string>& alternatives() const { return alternatives_; }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::deque<Field> fields_;  // add() gives out references
  std::vector<std::string> alternatives_;
};

/// Where a struct of another room is described; one of this room has a static describe(Fields&).
template <typename T>
struct Description {
  static void of(Fields& fields) { T::describe(fields); }
};

template <typename T>
const Fields& fields_of() {
  static const Fields fields = [] {
    Fields made;
    Description<T>::of(made);
    return made;
  }();
  return fields;
}

/// The key of a described member: key_of(&Roofline::fraction) is "fraction".
template <typename T, typename Member>
const char* key_of(Member T::*member) {
  for (const Field& field : fields_of<T>())
    if (field.offset == offset_of(member)) return field.key;
  return "";
}

}  // namespace scalemark

#include "record/shapes.hpp"
