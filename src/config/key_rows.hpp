// Internal to the table of keys: what describe() of a group writes its rows with, and how a field
// becomes a Key that reads and writes it.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/injection.hpp"
#include "config/keys.hpp"
#include "config/learning_rate.hpp"
#include "json.hpp"
#include "models/catalog.hpp"

namespace scalemark {

template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

/// Values that a user writes as text.
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

/// A row that was just added; every function says one thing more of it.
class Row {
 public:
  explicit Row(Key& key) : key_(key) {}

  /// The legal range of numbers, both included.
  Row& in(double low, double high) {
    key_.lowest = low;
    key_.highest = high;
    return *this;
  }
  /// What happens without a value, for keys that have no default.
  Row& otherwise(std::string meaning) {
    key_.unset = std::move(meaning);
    return *this;
  }
  /// Other commands than those of the group.
  Row& of(Commands commands) {
    key_.commands = commands;
    return *this;
  }
  /// What it means for some of them, in place of the row's words.
  Row& means(Commands commands, std::string value_name, std::string help, std::string standard) {
    key_.other_words = {commands, std::move(value_name), std::move(help), std::move(standard)};
    return *this;
  }
  /// Another role than that of the group.
  Row& role(Role role) {
    key_.role = role;
    return *this;
  }
  Row& is(Traits traits) {
    key_.traits = traits;
    return *this;
  }
  /// In the help that fits a screen.
  Row& often_used() {
    key_.often_used = true;
    return *this;
  }
  /// What it was called before, and the word in place of each that it had.
  Row& was(std::string name, std::map<std::string, std::string> values) {
    key_.former = FormerKey{std::move(name), std::move(values)};
    return *this;
  }
  Row& one_of_models() {
    key_.kind = Kind::choice;
    for (const ModelFacts& facts : kModels) key_.choices.emplace_back(facts.name);
    return is(Trait::catalog);
  }
  /// Another word for a value of a choice.
  template <Named E>
  Row& alias(const char* word, E value) {
    key_.choices.emplace_back(word);
    key_.aliases[word] = to_string(value);
    return *this;
  }
  /// A word that stands in place of the number until that is found; `asked` says that it is there.
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
  /// `scale` takes a list: the first value in the field, the others in `more`.
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
  /// Such a list has a value for each point of one curve.
  Row& by_point() {
    key_.by_point = true;
    return *this;
  }

 private:
  Key& key_;
};

class KeyRows {
 public:
  /// Of the rows that follow: the heading in the help, and what they are where they say no other.
  void group(std::string heading, Role role, Commands commands) {
    next_.group = std::move(heading);
    next_.role = role;
    next_.commands = commands;
  }

  /// `value_name`: placeholder in the help; empty for booleans.
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

}  // namespace scalemark
