// Internal to the key table: from a field of RunConfig to a Key that reads and writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "config/injection.hpp"
#include "config/keys.hpp"
#include "config/learning_rate.hpp"
#include "config/names.hpp"

namespace scalemark {

template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

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
  else if constexpr (std::is_enum_v<T>)
    return Kind::choice;
  else
    return Kind::text;
}

template <typename T>
nlohmann::ordered_json value_of(const T& field) {
  if constexpr (is_optional<T>)
    return field ? value_of(*field) : nlohmann::ordered_json(nullptr);
  else if constexpr (std::is_enum_v<T> || std::is_same_v<T, Injection> ||
                     std::is_same_v<T, LearningRateSchedule>)
    return to_string(field);
  else
    return field;
}

template <typename T>
void assign(T& field, const nlohmann::ordered_json& value) {
  if constexpr (is_optional<T>) {
    if (value.is_null())
      field.reset();
    else
      assign(field.emplace(), value);
  } else if constexpr (std::is_enum_v<T>) {
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
  std::vector<std::string> words;
  if constexpr (is_optional<T>) {
    return words_of<typename T::value_type>();
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& choice : ChoicesOf<T>::table) words.emplace_back(choice.name);
  }
  return words;
}

template <typename T>
Key key(std::string name, T RunConfig::*field, Role role, std::string group, std::string value_name,
        std::string help) {
  Key made;
  made.name = std::move(name);
  made.kind = kind_of<T>();
  made.role = role;
  made.group = std::move(group);
  made.value_name = std::move(value_name);
  made.help = std::move(help);
  made.choices = words_of<T>();
  made.get = [field](const RunConfig& config) { return value_of(config.*field); };
  made.set = [field](RunConfig& config, const nlohmann::ordered_json& value) {
    assign(config.*field, value);
  };
  return made;
}

/// A key of which `scale` takes a list: the first value in `field`, the others in `more`.
template <typename T, typename E>
Key key(std::string name, T RunConfig::*field, std::vector<E> RunConfig::*more, Role role,
        std::string group, std::string value_name, std::string help) {
  using Json = nlohmann::ordered_json;
  Key made =
      key(std::move(name), field, role, std::move(group), std::move(value_name), std::move(help));
  made.listed = true;
  made.get = [field, more](const RunConfig& config) -> Json {
    if ((config.*more).empty()) return value_of(config.*field);
    Json list = Json::array({value_of(config.*field)});
    for (const E& value : config.*more) list.push_back(value_of(value));
    return list;
  };
  made.set = [field, more](RunConfig& config, const Json& value) {
    (config.*more).clear();
    assign(config.*field, value.is_array() ? value.at(0) : value);
    if (!value.is_array()) return;
    for (std::size_t i = 1; i < value.size(); ++i) assign((config.*more).emplace_back(), value[i]);
  };
  return made;
}

}  // namespace scalemark
