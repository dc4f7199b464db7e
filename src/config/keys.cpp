// See keys.hpp.
#include "config/keys.hpp"

#include <fmt/format.h>

#include "config/key_rows.hpp"
#include "config/text.hpp"
#include "json.hpp"

namespace scalemark {

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

}  // namespace scalemark
