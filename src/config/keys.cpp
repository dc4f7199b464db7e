// Builds the key table from the groups of config/keys/, and checks and parses values by it.
#include "config/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/learning_rate.hpp"
#include "config/text.hpp"
#include "config/value_syntax.hpp"
#include "error.hpp"
#include "json.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

// The types below are internal to the table of keys: describe() of a group writes its rows with
// them, and they turn a field into a Key that reads and writes it.

template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

/// Says which values a user writes as text.
template <typename T>
constexpr bool is_written =
    Named<T> || std::is_same_v<T, Injection> || std::is_same_v<T, LearningRateSchedule>;

template <typename T>
constexpr Kind kind_of() {
  if constexpr (is_optional<T>)
    return kind_of<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return Kind::boolean;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return Kind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return Kind::real;
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return Kind::integers;
  else if constexpr (std::is_same_v<T, Injection>)
    return Kind::injection;
  else if constexpr (std::is_same_v<T, LearningRateSchedule>)
    return Kind::schedule;
  else if constexpr (Named<T>)
    return Kind::choice;
  else
    return Kind::text;
}

template <typename T>
Json value_of(const T& field) {
  if constexpr (is_optional<T>)
    return field ? value_of(*field) : Json(nullptr);
  else if constexpr (is_written<T>)
    return to_string(field);
  else
    return field;
}

template <typename T>
void assign(T& field, const Json& value) {
  if constexpr (is_optional<T>) {
    if (value.is_null())
      field.reset();
    else
      assign(field.emplace(), value);
  } else if constexpr (Named<T>) {
    field = from_string<T>(value.get_ref<const std::string&>()).value();
  } else if constexpr (std::is_same_v<T, Injection>) {
    field = parse_injection(value.get_ref<const std::string&>());
  } else if constexpr (std::is_same_v<T, LearningRateSchedule>) {
    field = parse_lr_schedule(value.get_ref<const std::string&>());
  } else {
    field = value.get<T>();
  }
}

template <typename T>
std::vector<std::string> words_of() {
  if constexpr (is_optional<T>) {
    return words_of<typename T::value_type>();
  } else if constexpr (Named<T>) {
    constexpr auto names = names_of(T{});
    return {names.begin(), names.end()};
  }
  return {};
}

/// A row that was just added. Every function adds one property to it.
class Row {
 public:
  explicit Row(Key& key) : key_(key) {}

  /// Sets the legal range of numbers, both ends included.
  Row& in(double low, double high) {
    key_.lowest = low;
    key_.highest = high;
    return *this;
  }
  /// Says what happens without a value, for keys that have no default.
  Row& otherwise(std::string meaning) {
    key_.unset = std::move(meaning);
    return *this;
  }
  /// Sets other commands than those of the group.
  Row& of(Commands commands) {
    key_.commands = commands;
    return *this;
  }
  /// Says what the key means for some commands, in place of the row's words.
  Row& means(Commands commands, std::string value_name, std::string help, std::string standard) {
    key_.other_words = {commands, std::move(value_name), std::move(help), std::move(standard)};
    return *this;
  }
  /// Sets another role than that of the group.
  Row& role(Role role) {
    key_.role = role;
    return *this;
  }
  Row& is(Traits traits) {
    key_.traits = traits;
    return *this;
  }
  /// Shows the key in the help that fits a screen.
  Row& often_used() {
    key_.often_used = true;
    return *this;
  }
  /// Sets the former name of the key, and the present word for each of its former words.
  Row& was(std::string name, std::map<std::string, std::string> values) {
    key_.former = FormerKey{std::move(name), std::move(values)};
    return *this;
  }
  Row& one_of_models() {
    key_.kind = Kind::choice;
    for (const ModelFacts& facts : kModels) key_.choices.emplace_back(facts.name);
    return is(Trait::catalog);
  }
  /// Adds another word for a value of a choice.
  template <Named E>
  Row& alias(const char* word, E value) {
    key_.choices.emplace_back(word);
    key_.aliases[word] = to_string(value);
    return *this;
  }
  /// Adds a word that replaces the number until that is found. `asked` says that the word was
  /// given.
  template <typename Group>
  Row& or_word(const char* word, bool Group::*asked) {
    key_.words.emplace_back(word);
    key_.get = [word, asked, get = std::move(key_.get)](const RunConfig& config) {
      Json value = get(config);
      return value.is_null() && config.*asked ? Json(word) : value;
    };
    key_.set = [word, asked, set = std::move(key_.set)](RunConfig& config, const Json& value) {
      config.*asked = value == word;
      set(config, config.*asked ? Json() : value);
    };
    return *this;
  }
  /// Makes the key a list for `scale`: the first value is in the field, the others are in `more`.
  template <typename Group, typename T>
  Row& listed(std::vector<T> Group::*more) {
    key_.listed = true;
    key_.get = [more, get = std::move(key_.get)](const RunConfig& config) {
      if ((config.*more).empty()) return get(config);
      Json list = Json::array({get(config)});
      for (const T& value : config.*more) list.push_back(value_of(value));
      return list;
    };
    key_.set = [more, set = std::move(key_.set)](RunConfig& config, const Json& value) {
      (config.*more).clear();
      set(config, value.is_array() ? value.at(0) : value);
      for (std::size_t i = 1; value.is_array() && i < value.size(); ++i)
        assign((config.*more).emplace_back(), value[i]);
    };
    return *this;
  }
  /// Makes such a list hold a value for each point of one curve.
  Row& by_point() {
    key_.by_point = true;
    return *this;
  }

 private:
  Key& key_;
};

class KeyRows {
 public:
  /// Begins a group: sets the heading of the following rows in the help, and their role and
  /// commands where they set no others.
  void group(std::string heading, Role role, Commands commands) {
    next_.group = std::move(heading);
    next_.role = role;
    next_.commands = commands;
  }

  /// Adds a row. `value_name` is the placeholder in the help, empty for booleans.
  template <typename Group, typename T>
  Row add(std::string name, T Group::*field, std::string value_name, std::string help) {
    Key& key = keys_.emplace_back(next_);
    key.name = std::move(name);
    key.kind = kind_of<T>();
    key.value_name = std::move(value_name);
    key.help = std::move(help);
    key.choices = words_of<T>();
    key.get = [field](const RunConfig& config) { return value_of(config.*field); };
    key.set = [field](RunConfig& config, const Json& value) { assign(config.*field, value); };
    return Row(key);
  }

  std::vector<Key> keys() && { return std::move(keys_); }

 private:
  Key next_;
  std::vector<Key> keys_;
};

}  // namespace

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = [] {
    KeyRows rows;
    RunConfig::for_each_group([&]<typename Group>() { Group::describe(rows); });
    return std::move(rows).keys();
  }();
  return keys;
}

bool recorded(const Key& key, Command command) {
  return key.commands.contains(command) ||
         (command == Command::run && key.commands.contains(Command::scale));
}

const Key* find_key(std::string_view name) {
  for (const Key& key : all_keys())
    if (key.name == name) return &key;
  return nullptr;
}

const Key* find_former_key(std::string_view name) {
  for (const Key& key : all_keys())
    if (key.former && key.former->name == name) return &key;
  return nullptr;
}

const Key* find_written_key(std::string_view name) {
  const Key* key = find_key(name);
  return key ? key : find_former_key(name);
}

bool is_key(std::string_view name, Trait trait) {
  const Key* key = find_key(name);
  return key && key->traits.contains(trait);
}

namespace {

/// Returns the legal values of a single value.
std::string legal_value(const Key& key) {
  switch (key.kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::choice:
      return join(key.choices, ", ");
    case Kind::integer:
      return fmt::format("{:.0f} to {:.0f}{}{}", key.lowest, key.highest,
                         key.words.empty() ? "" : ", or ", join(key.words, ", "));
    case Kind::real:
      return fmt::format("{} to {}", key.lowest, key.highest);
    case Kind::integers:
      return fmt::format("ascending numbers, each {:.0f} to {:.0f}, or auto", key.lowest,
                         key.highest);
    case Kind::injection:
      return join(injection_kinds(), ", ");
    case Kind::schedule:
      return join(lr_schedule_words(), ", ") + ", or LR0;E1;LR1;...";
    case Kind::text:
      break;
  }
  return "text without control characters";
}

}  // namespace

std::string legal_values(const Key& key) {
  return legal_value(key) + (!key.listed    ? ""
                             : key.by_point ? "; of scale a list too, one for each point"
                                            : "; of scale a list too, a curve each");
}

std::string default_text(const Key& key) {
  const Json value = key.get(RunConfig{});
  if (value.is_null()) return key.unset;
  if (key.kind == Kind::integers) return "auto";
  if (key.kind == Kind::real) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

namespace {

bool is_one_of(const Json& value, const std::vector<std::string>& words) {
  return value.is_string() &&
         std::ranges::find(words, value.get_ref<const std::string&>()) != words.end();
}

constexpr std::size_t kMostListed = 64;  // of a curve, and curves of a list

/// Returns a JSON value as the user may have written it, short enough for a message.
std::string shown(const Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump();
}

/// Returns the place of the i-th value of a list. Users know a place in a file by its JSON pointer;
/// a flag or a variable has none.
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
  // 50.0 is one, as JSON of other programs and shells has it.
  if (value.is_number_float() && std::abs(value.get<double>()) < 9e15 &&
      value.get<double>() == std::trunc(value.get<double>()))
    return check_integer(key, static_cast<std::int64_t>(value.get<double>()), place);
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

/// Returns an integer. Text that is not a number stays text, so that check_value() says what is
/// wrong with it.
Json parse_integer_json(std::string_view text) {
  if (const auto number = parse_integer(text)) return *number;
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789.", text[0] == '-') == text.npos;
  if (const auto real = parse_real(text); real && digits && text != "-") return *real;
  return std::string(text);
}

/// Parses a list such as "a,b,c", of whole numbers or of words.
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

/// Checks a list. A list of one value becomes that value.
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

/// Returns the present word for a former one, or null for any other value.
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
