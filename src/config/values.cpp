// See values.hpp.
#include "config/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/injection.hpp"
#include "config/learning_rate.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

bool is_one_of(const Json& value, const std::vector<std::string>& words) {
  return value.is_string() &&
         std::ranges::find(words, value.get_ref<const std::string&>()) != words.end();
}

constexpr std::size_t kMostListed = 64;  // of a curve, and curves of a list

/// A JSON value as the user may have written it, short enough for a message.
std::string shown(const Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump();
}

/// Of the i-th value of a list. Users know a place in a file by its JSON pointer; a flag or a
/// variable has none.
std::string item_of(std::string_view place, std::size_t i) {
  return place.find('/') == place.npos ? std::string(place) : fmt::format("{}/{}", place, i);
}

[[noreturn]] void wrong_type(const Key& key, const Json& value, std::string_view place,
                             std::string_view type) {
  refuse_at(place, fmt::format("{} is not {} (legal: {})", shown(value), type, legal_values(key)));
}

[[noreturn]] void out_of_range(const Key& key, const std::string& value, std::string_view place) {
  refuse_at(place, fmt::format("{} is out of range (legal: {})", value, legal_values(key)));
}

Json check_integer(const Key& key, const Json& value, std::string_view place) {
  if (!value.is_number_integer()) {
    // A whole number beyond 64 bits reaches us as floating point.
    if (value.is_number_float() && std::abs(value.get<double>()) > 9e18)
      out_of_range(key, shown(value), place);
    wrong_type(key, value, place, "a whole number");
  }
  const double number = value.get<double>();
  if (number < key.lowest || number > key.highest) out_of_range(key, shown(value), place);
  return value.get<std::int64_t>();
}

Json check_real(const Key& key, const Json& value, std::string_view place) {
  if (!value.is_number()) wrong_type(key, value, place, "a number");
  const double number = value.get<double>();
  if (!(number >= key.lowest && number <= key.highest)) out_of_range(key, shown(value), place);
  return number;
}

Json check_choice(const Key& key, const Json& value, std::string_view place) {
  if (!value.is_string()) wrong_type(key, value, place, "one of its words");
  const auto& word = value.get_ref<const std::string&>();
  if (std::find(key.choices.begin(), key.choices.end(), word) == key.choices.end())
    refuse_at(place, fmt::format("unknown {} {}{} (legal: {})", key.name, quote(word),
                                 did_you_mean(word, key.choices), legal_values(key)));
  const auto alias = key.aliases.find(word);
  return alias == key.aliases.end() ? word : alias->second;
}

Json check_integers(const Key& key, const Json& value, std::string_view place) {
  if (value == "auto") return Json::array();
  if (!value.is_array() || value.size() > kMostListed)
    refuse_at(place, fmt::format("{} is not a list of up to {} numbers such as 1,2,4, nor auto",
                                 shown(value), kMostListed));
  if (value.empty()) refuse_at(place, "the list is empty; give numbers such as 1,2,4, or auto");
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < value.size(); ++i)
    numbers.push_back(check_integer(key, value[i], item_of(place, i)).get<std::int64_t>());
  std::vector<std::int64_t> ascending = numbers;
  std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  if (ascending != numbers)
    refuse_at(place, fmt::format("the numbers must ascend without repeats: {}",
                                 fmt::join(ascending, ",")));
  return numbers;
}

Json check_string(const Key& key, const Json& value, std::string_view place) {
  if (!value.is_string()) wrong_type(key, value, place, "a text");
  const auto& text = value.get_ref<const std::string&>();
  check_text(text, place);
  if (key.kind == Kind::text) return text;
  try {
    return key.kind == Kind::injection ? to_string(parse_injection(text))
                                       : to_string(parse_lr_schedule(text));
  } catch (const ConfigError& error) {
    refuse_at(place, error.what());
  }
}

Json parse_boolean(const Key& key, std::string_view text, std::string_view place) {
  constexpr std::array yes{"true", "1", "yes", "on"};
  constexpr std::array no{"false", "0", "no", "off"};
  if (std::find(yes.begin(), yes.end(), text) != yes.end()) return true;
  if (std::find(no.begin(), no.end(), text) != no.end()) return false;
  wrong_type(key, std::string(text), place, "a truth value");
}

/// Text that is no number stays text, so that check_value() says what is wrong with it.
Json parse_integer_json(std::string_view text) {
  if (const auto number = parse_integer(text)) return *number;
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789", text[0] == '-') == text.npos;
  if (const auto big = parse_real(text); big && digits && text != "-") return *big;
  return std::string(text);
}

/// "a,b,c", of whole numbers or of words.
Json parse_list(std::string_view text, bool numbers) {
  if (text == "auto") return "auto";
  Json list = Json::array();
  for (std::size_t comma = 0; comma != text.npos;) {
    comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    list.push_back(numbers ? parse_integer_json(part) : Json(std::string(part)));
    if (comma != text.npos) text.remove_prefix(comma + 1);
  }
  return list;
}

Json check_single(const Key& key, const Json& value, std::string_view place) {
  if (is_one_of(value, key.words)) return value;
  switch (key.kind) {
    case Kind::boolean:
      if (!value.is_boolean()) wrong_type(key, value, place, "a truth value");
      return value;
    case Kind::integer:
      return check_integer(key, value, place);
    case Kind::real:
      return check_real(key, value, place);
    case Kind::choice:
      return check_choice(key, value, place);
    case Kind::integers:
      return check_integers(key, value, place);
    case Kind::text:
    case Kind::injection:
    case Kind::schedule:
      break;
  }
  return check_string(key, value, place);
}

/// A list of one is that one.
Json check_list(const Key& key, const Json& values, std::string_view place) {
  if (values.empty() || values.size() > kMostListed)
    refuse_at(place, fmt::format("a list holds 1 to {} values, not {} (legal: {})", kMostListed,
                                 values.size(), legal_values(key)));
  Json list = Json::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Json value = check_single(key, values[i], item_of(place, i));
    if (values.size() > 1 && is_one_of(value, key.words))
      refuse_at(item_of(place, i),
                fmt::format("{} stands alone; a list is of numbers", shown(value)));
    if (!key.by_point && std::find(list.begin(), list.end(), value) != list.end())
      refuse_at(place, fmt::format("{} is there twice; each value makes a curve", shown(value)));
    list.push_back(value);
  }
  return list.size() == 1 ? list.front() : list;
}

}  // namespace

void check_text(std::string_view text, std::string_view place) {
  constexpr std::size_t kLongest = 4096;
  if (text.empty()) refuse_at(place, "the text is empty; leave the key out instead");
  if (text.size() > kLongest)
    refuse_at(place, fmt::format("the text is longer than {} bytes", kLongest));
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), control))
    refuse_at(place, fmt::format("control characters are not allowed: {}", quote(text)));
  try {
    Json(std::string(text)).dump();
  } catch (const Json::exception&) {
    refuse_at(place, fmt::format("the text is not UTF-8: {}", quote(text)));
  }
}

Json check_value(const Key& key, const Json& value, std::string_view place) {
  if (value.is_null()) {
    if (key.unset.empty()) wrong_type(key, value, place, "a value");
    return value;
  }
  return key.listed && value.is_array() ? check_list(key, value, place)
                                        : check_single(key, value, place);
}

namespace {

/// The word in place of a former one. Null of another key's value.
Json in_place_of(const FormerKey& former, const Json& value) {
  const auto found =
      value.is_string() ? former.values.find(value.get<std::string>()) : former.values.end();
  return found == former.values.end() ? Json() : Json(found->second);
}

WrittenSetting read_former(const Key& key, const Json& value, std::string_view place) {
  const FormerKey& former = *key.former;
  const Json now = in_place_of(former, value);
  if (now.is_null()) {
    std::vector<std::string> words;
    for (const auto& [word, meaning] : former.values) words.push_back(word);
    refuse_at(place, fmt::format("{} is no value of {} (legal: {}; the key is called {} now: {})",
                                 shown(value), former.name, join(words, ", "), key.name,
                                 legal_values(key)));
  }
  return {
      &key, now,
      fmt::format("{}: {} is called {} now, and {} is {}: write --{} {}, in files \"{}\": "
                  "\"{}\"",
                  place, former.name, key.name, value.get<std::string>(), now.get<std::string>(),
                  key.name, now.get<std::string>(), key.name, now.get<std::string>())};
}

}  // namespace

WrittenSetting read_written(std::string_view name, std::string_view text, std::string_view place) {
  if (const Key* key = find_key(name)) return {key, parse_value(*key, text, place), ""};
  return read_former(*find_former_key(name), std::string(text), place);
}

WrittenSetting check_written(std::string_view name, const Json& value, std::string_view place) {
  if (const Key* key = find_key(name)) return {key, check_value(*key, value, place), ""};
  return read_former(*find_former_key(name), value, place);
}

std::string current_name(const std::string& name) {
  const Key* const former = find_former_key(name);
  return former ? former->name : name;
}

std::pair<std::string, Json> current_setting(const std::string& name, const Json& value) {
  const Key* const key = find_key(name) ? nullptr : find_former_key(name);
  const Json now = key ? in_place_of(*key->former, value) : Json();
  if (now.is_null()) return {name, value};
  return {key->name, now};
}

Json parse_value(const Key& key, std::string_view text, std::string_view place) {
  if (key.listed && text.find(',') != text.npos)
    return check_value(key, parse_list(text, key.kind == Kind::integer), place);
  switch (key.kind) {
    case Kind::boolean:
      return parse_boolean(key, text, place);
    case Kind::integer:
      return check_value(key, parse_integer_json(text), place);
    case Kind::integers:
      return check_value(key, parse_list(text, true), place);
    case Kind::real:
      if (const auto number = parse_real(text)) return check_value(key, *number, place);
      break;
    default:
      break;
  }
  return check_value(key, std::string(text), place);
}

}  // namespace scalemark
