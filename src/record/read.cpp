// Values from JSON, shape by shape, each checked by the limits of its field.
#include "record/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "config/json_text.hpp"
#include "config/text.hpp"

namespace scalemark {
namespace {

/// In place of the value of a key that is not there.
const Json kMissing(Json::value_t::discarded);

constexpr const char* kScalarTypes[] = {"boolean", "integer", "number", "string"};

std::string of_type(const JsonReader& reader, std::string_view type) {
  return fmt::format("of type {}{}", type, reader.nullable ? " or null" : "");
}

[[noreturn]] void refuse_value(const JsonReader& reader, const Json& json,
                               const std::string& what) {
  reader.refuse(fmt::format("is {}, not {}", shown_value(json), what));
}

void check_type(const JsonReader& reader, bool fits, const Json& json, std::string_view type) {
  if (!fits) refuse_value(reader, json, of_type(reader, type));
}

void check_range(const JsonReader& reader, const Limits& limits, double number, const Json& json) {
  const auto check = [&](const std::optional<double>& limit, const char* what, auto fits) {
    if (limit && !fits(number, *limit))
      reader.refuse(fmt::format("is {}, not {} {}", json.dump(), what, *limit));
  };
  check(limits.least, "at least", std::greater_equal<>());
  check(limits.most, "at most", std::less_equal<>());
  check(limits.above, "above", std::greater<>());
  check(limits.below, "below", std::less<>());
}

void check_size(const JsonReader& reader, const Limits& limits, std::size_t size,
                const Json& json) {
  if (size >= limits.fewest.value_or(0) && (!limits.longest || size <= *limits.longest)) return;
  reader.refuse(fmt::format("({}) has a size of {}, not from {} to {}", shown_value(json), size,
                            limits.fewest.value_or(0),
                            limits.longest ? std::to_string(*limits.longest) : "any"));
}

void check_words(const JsonReader& reader, const Json& words, const Json& json) {
  if (words.is_null() || std::ranges::find(words, json) != words.end()) return;
  if (words.size() == 1 && !reader.nullable) refuse_value(reader, json, words[0].dump());
  Json legal = words;
  if (reader.nullable) legal.push_back(nullptr);
  refuse_value(reader, json, "one of " + legal.dump());
}

}  // namespace

bool is_whole(const Json& json) {
  if (json.is_number_integer()) return true;
  if (!json.is_number_float()) return false;
  const double number = json.get<double>();
  return std::abs(number) < 9e15 && number == std::floor(number);
}

void JsonReader::read(const Fields& fields, const Json& json, void* object) {
  check_type(*this, json.is_object(), json, "object");
  nullable = false;
  if (only_known) refuse_unknown(fields, json);
  auto next = json.begin();
  for (const Field& field : fields) {
    // Keys stand in the order of the fields in nearly every record: no search.
    const auto found = next != json.end() && next.key() == field.key ? next : json.find(field.key);
    read_field(field, found == json.end() ? kMissing : *found, object);
    if (found != json.end()) next = std::next(found);
  }
  check_alternatives(fields, json);
}

void JsonReader::check_alternatives(const Fields& fields, const Json& json) const {
  const auto& keys = fields.alternatives();
  const auto there =
      std::ranges::count_if(keys, [&](const std::string& key) { return json.contains(key); });
  if (!keys.empty() && there != 1)
    refuse(fmt::format("needs one of {}, has {} of them", fmt::join(keys, ", "), there));
}

void JsonReader::refuse_unknown(const Fields& fields, const Json& json) {
  std::vector<std::string> known;
  for (const Field& field : fields) known.emplace_back(field.key);
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(known, key) == known.end())
      throw UnknownKey(fmt::format("{}{} is no key of it{} (legal: {})", pointer(), pointer_to(key),
                                   did_you_mean(key, known), fmt::join(known, ", ")));
}

void JsonReader::read_field(const Field& field, const Json& json, void* object) {
  void* member = static_cast<char*>(object) + field.offset;
  const bool newer = field.first_revision > revision_;
  // Of a record that was read from a file, what is newer has been made null.
  const bool made_null = newer && json.is_null() && !field.shape->may_be_unknown();
  if (!json.is_discarded() && !made_null)
    return read_below(field.key, field, *field.shape, json, member);
  if (field.may_lack) return;
  if (newer)
    return field.shape->set_missing(
        fmt::format("not in records before schema_revision {}", field.first_revision), member);
  place_.emplace_back(field.key);
  refuse("is missing");
}

void JsonReader::read_below(std::string_view key, const Field& field, const Shape& shape,
                            const Json& json, void* value) {
  place_.emplace_back(key);
  shape.read(*this, field, json, value);
  place_.pop_back();
}

void JsonReader::read_item(std::size_t index, const Field& field, const Shape& shape,
                           const Json& json, void* value) {
  place_.emplace_back(index);
  shape.read(*this, field, json, value);
  place_.pop_back();
}

std::string JsonReader::pointer() const {
  std::string pointer;
  for (const auto& step : place_)
    pointer += std::holds_alternative<std::size_t>(step)
                   ? "/" + std::to_string(std::get<std::size_t>(step))
                   : pointer_to(std::string(std::get<std::string_view>(step)));
  return pointer;
}

void JsonReader::refuse(const std::string& what) const {
  const std::string place = pointer();
  throw RecordFault(fmt::format("{}{}{}", place, place.empty() ? "" : " ", what));
}

std::string JsonReader::reason() const {
  std::string path;
  for (const auto& step : place_)
    if (const auto* key = std::get_if<std::string_view>(&step))
      path.append(path.empty() ? "" : ".").append(*key);
  const auto found = reasons_->find(path);
  return found != reasons_->end() && found->is_string() ? found->get<std::string>() : "";
}

void ScalarShape::check(JsonReader& reader, const Field& field, const Json& json) const {
  check_words(reader, field.limits.words, json);
  const bool fits = scalar_ == Scalar::boolean  ? json.is_boolean()
                    : scalar_ == Scalar::whole  ? is_whole(json)
                    : scalar_ == Scalar::number ? json.is_number()
                                                : json.is_string();
  check_type(reader, fits, json, kScalarTypes[static_cast<std::size_t>(scalar_)]);
  if (json.is_number()) check_range(reader, field.limits, json.get<double>(), json);
  if (json.is_string())
    check_size(reader, field.limits, json.get_ref<const std::string&>().size(), json);
}

void AnyShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  const auto fits = [&](const Json& type) {
    return type == "null"      ? json.is_null()
           : type == "boolean" ? json.is_boolean()
           : type == "integer" ? is_whole(json)
           : type == "number"  ? json.is_number()
           : type == "string"  ? json.is_string()
           : type == "array"   ? json.is_array()
                               : json.is_object();
  };
  if (const Json& types = field.json_types; !types.is_null() && std::ranges::none_of(types, fits))
    check_type(reader, false, json,
               fmt::format("{}", fmt::join(types.get<std::vector<std::string>>(), " or ")));
  *static_cast<Json*>(value) = json;
}

std::size_t NameShape::find(JsonReader& reader, const Field& field, const Json& json) const {
  const auto name =
      std::ranges::find(names_, json.is_string() ? json.get_ref<const std::string&>() : "");
  check_words(reader, field.limits.words, json);
  if (name == names_.end()) check_words(reader, std::vector(names_.begin(), names_.end()), json);
  return static_cast<std::size_t>(name - names_.begin());
}

void ObjectShape::read(JsonReader& reader, const Field& field, const Json& json,
                       void* value) const {
  if (json.is_object()) check_size(reader, field.limits, json.size(), json);
  reader.read(fields_(), json, value);
}

void ListShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  check_type(reader, json.is_array(), json, "array");
  check_size(reader, field.limits, json.size(), json);
  reader.nullable = false;
  if (!resize(value, json.size()))
    reader.refuse(
        fmt::format("({}) has a size of {}, not {}", shown_value(json), json.size(), fixed()));
  const Field inner = field.inner();
  for (std::size_t i = 0; i < json.size(); ++i)
    reader.read_item(i, inner, inner_, json[i], item(value, i));
}

void NumbersShape::read(JsonReader& reader, const Field& field, const Json& json,
                        void* value) const {
  check_type(reader, json.is_array(), json, "array");
  check_size(reader, field.limits, json.size(), json);
  auto& numbers = *static_cast<std::vector<double>*>(value);
  numbers.clear();
  numbers.reserve(json.size());
  const bool limited =
      field.limits.least || field.limits.most || field.limits.above || field.limits.below;
  for (const Json& part : json) {
    if (part.is_null() && field.null_numbers != nullptr) {
      numbers.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    if (!part.is_number() || limited) {
      reader.nullable = field.null_numbers != nullptr;
      const std::size_t at = numbers.size();
      reader.read_item(at, field, shape_of<double>(), part, &numbers.emplace_back());
    } else {
      numbers.push_back(part.get<double>());
    }
  }
}

void IntervalShape::read(JsonReader& reader, const Field&, const Json& json, void* value) const {
  check_type(reader, json.is_array(), json, "array");
  if (json.size() != 2)
    reader.refuse(
        fmt::format("({}) has a size of {}, not from 2 to 2", shown_value(json), json.size()));
  reader.nullable = false;
  for (std::size_t i = 0; i < 2; ++i)
    if (!json[i].is_number()) {
      static const Field any("", 0, shape_of<double>(), "");
      double ignored = 0;
      reader.read_item(i, any, shape_of<double>(), json[i], &ignored);
    }
  *static_cast<Interval*>(value) = {json[0].get<double>(), json[1].get<double>()};
}

void MapShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  check_type(reader, json.is_object(), json, "object");
  check_size(reader, field.limits, json.size(), json);
  reader.nullable = false;
  clear(value);
  const Field inner = field.inner();
  for (const auto& [key, part] : json.items())
    reader.read_below(key, inner, inner_, part, add(value, key));
}

void NullableShape::read(JsonReader& reader, const Field& field, const Json& json,
                         void* value) const {
  if (json.is_null() && !field.may_lack)
    return set_missing(why(value) ? reader.reason() : "", value);
  reader.nullable = !field.may_lack;
  inner_.read(reader, field, json, emplace(value));
  reader.nullable = false;
}

}  // namespace scalemark
