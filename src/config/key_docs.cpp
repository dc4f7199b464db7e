// See key_docs.hpp.
#include "config/key_docs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/keys.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

Json number_schema(const Key& key) {
  // Ranges are whole numbers where the key is one.
  if (key.kind != Kind::real)
    return {{"type", "integer"},
            {"minimum", static_cast<std::int64_t>(key.lowest)},
            {"maximum", static_cast<std::int64_t>(key.highest)}};
  return {{"type", "number"}, {"minimum", key.lowest}, {"maximum", key.highest}};
}

Json single_schema(const Key& key) {
  switch (key.kind) {
    case Kind::boolean:
      return {{"type", "boolean"}};
    case Kind::integer:
    case Kind::real:
      if (!key.words.empty())
        return {{"oneOf", Json::array({{{"enum", key.words}}, number_schema(key)})}};
      return number_schema(key);
    case Kind::choice:
      return {{"enum", key.choices}};
    case Kind::integers: {
      const Json list = {
          {"type", "array"}, {"items", number_schema(key)}, {"minItems", 1}, {"maxItems", 64}};
      return {{"oneOf", Json::array({{{"const", "auto"}}, list})}};
    }
    case Kind::text:
    case Kind::injection:
    case Kind::schedule:
      break;
  }
  return {{"type", "string"}, {"minLength", 1}, {"maxLength", 4096}};
}

Json value_schema(const Key& key) {
  const Json single = single_schema(key);
  if (!key.listed) return single;
  const Json list = {{"type", "array"},
                     {"items", single},
                     {"minItems", 1},
                     {"maxItems", 64},
                     {"uniqueItems", true}};
  return {{"oneOf", Json::array({single, list})}};
}

/// For all commands at once.
std::string meaning(const Key& key) {
  std::string commands;
  for (const Command command : {Command::run, Command::scale, Command::infer, Command::preflight})
    if (key.other_words.commands.contains(command))
      commands += (commands.empty() ? "" : ", ") + std::string(name_of(command));
  if (commands.empty()) return key.help;
  return fmt::format("{}. Of {}: {}", key.help, commands, key.other_words.help);
}

Json key_schema(const Key& key) {
  Json schema = {{"description", meaning(key)}};
  if (key.unset.empty())
    schema.update(value_schema(key));
  else
    schema["anyOf"] = Json::array({value_schema(key), {{"type", "null"}}});
  const Json value = key.get(RunConfig{});
  if (!value.is_null()) schema["default"] = key.kind == Kind::integers ? Json("auto") : value;
  return schema;
}

Json former_schema(const Key& key) {
  Json words = Json::array();
  std::string meanings;
  for (const auto& [word, now] : key.former->values) {
    words.push_back(word);
    meanings += fmt::format("{}{} is {}", meanings.empty() ? "" : ", ", word, now);
  }
  return {{"description", fmt::format("Former name of {}: {}.", key.name, meanings)},
          {"enum", words},
          {"deprecated", true}};
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

}  // namespace

Json config_schema() {
  Json properties = {{"$schema", {{"type", "string"}}}, {"description", {{"type", "string"}}}};
  for (const Key& key : all_keys()) properties[key.name] = key_schema(key);
  for (const Key& key : all_keys())
    if (key.former) properties[key.former->name] = former_schema(key);
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "A scalemark configuration"},
          {"description",
           "One flat object of keys; every key is optional. Made from src/config/keys/."},
          {"type", "object"},
          {"properties", properties},
          {"additionalProperties", false}};
}

std::string key_tables() {
  std::string text, group;
  for (const Key& key : all_keys()) {
    if (key.group != group) {
      group = key.group;
      text += fmt::format(
          "\n### {}\n\n| key | legal | default | role | meaning |\n| --- | --- | --- | --- | --- "
          "|\n",
          group);
    }
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, cell(legal_values(key)),
                        cell(default_text(key)), to_string(key.role), cell(meaning(key)));
  }
  return text;
}

}  // namespace scalemark
