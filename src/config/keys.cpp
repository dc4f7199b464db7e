// What keys are apart from their table; see key_table.cpp.
#include "config/keys.hpp"

#include <fmt/format.h>

#include "config/injection.hpp"
#include "config/learning_rate.hpp"
#include "config/text.hpp"

namespace scalemark {

using Json = nlohmann::ordered_json;

Key Key::in(double low, double high) && {
  lowest = low;
  highest = high;
  return std::move(*this);
}
Key Key::one_of(std::vector<std::string> words) && {
  kind = Kind::choice;
  choices = std::move(words);
  return std::move(*this);
}
Key Key::or_words(std::vector<std::string> legal) && {
  words = std::move(legal);
  return std::move(*this);
}
Key Key::not_yet(std::vector<std::string> words) && {
  planned = std::move(words);
  return std::move(*this);
}
Key Key::otherwise(std::string meaning) && {
  unset = std::move(meaning);
  return std::move(*this);
}
Key Key::of_scale() && {
  scale_only = true;
  return std::move(*this);
}

Key Key::of_infer() && {
  infer_only = true;
  return std::move(*this);
}

Key Key::of_preflight() && {
  preflight_only = true;
  return std::move(*this);
}

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = make_key_table();
  return keys;
}

const Key* find_key(std::string_view name) {
  for (const Key& key : all_keys())
    if (key.name == name) return &key;
  return nullptr;
}

const std::vector<std::string>& planned_flags() {
  static const std::vector<std::string> flags{"vary"};
  return flags;
}

namespace {

/// Of a single value.
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
  return legal_value(key) + (key.listed ? "; of scale a list too, a curve each" : "");
}

std::string default_text(const Key& key) {
  const Json value = key.get(RunConfig{});
  if (value.is_null()) return key.unset;
  if (key.kind == Kind::integers) return "auto";
  if (key.kind == Kind::real) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::identity:
      return "identity";
    case Role::measurement:
      return "measurement";
    case Role::output:
      break;
  }
  return "output";
}

}  // namespace scalemark
