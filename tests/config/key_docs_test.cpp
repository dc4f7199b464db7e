// The schema and the documentation say what the key table says. UPDATE_DOCS=1 writes them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "config/keys.hpp"
#include "config_support.hpp"
#include "json.hpp"

namespace scalemark::key_docs_test {
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

/// docs/schema/config.schema.json (JSON Schema 2020-12).
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

/// One Markdown table a group: key, legal values, default, role, meaning.
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

const std::string kSchema = SCALEMARK_SOURCE_DIR "/docs/schema/config.schema.json";
const std::string kPage = SCALEMARK_SOURCE_DIR "/docs/configuration.md";

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Compares a file with what it should hold, or writes it where UPDATE_DOCS is set.
void expect_file(const std::string& path, const std::string& text) {
  if (std::getenv("UPDATE_DOCS")) std::ofstream(path) << text;
  EXPECT_EQ(read(path), text)
      << path << " is out of date: UPDATE_DOCS=1 ctest --test-dir build/dev -R config writes it";
}

TEST(KeyTable, NamesAreUniqueAndEveryKeyIsDescribed) {
  std::set<std::string> names;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_EQ(key.value_name.empty(), key.kind == Kind::boolean) << key.name;
    EXPECT_EQ(key.get(RunConfig{}).is_null(), !key.unset.empty()) << key.name;
    if (key.kind == Kind::integer || key.kind == Kind::real) {
      EXPECT_LT(key.lowest, key.highest) << key.name;
    }
  }
}

/// A new key is its row: no list elsewhere has to be extended. What the room itself does with keys
/// concerns the batch, the launch and the plan of a sweep (that of a curve's baselines, too).
TEST(KeyTable, AKeyIsNamedInItsRowAlone) {
  std::set<std::string> spelled;
  for (const auto& entry :
       std::filesystem::directory_iterator(SCALEMARK_SOURCE_DIR "/src/config")) {
    const std::string source = entry.is_directory() ? "" : read(entry.path());
    for (const Key& key : all_keys())
      if (source.find('"' + key.name + '"') != source.npos) spelled.insert(key.name);
  }
  EXPECT_EQ(spelled,
            (std::set<std::string>{"base_batch_size", "batch_size", "communicator", "container",
                                   "container_program", "container_runtime", "global_batch_size",
                                   "global_batch_tokens", "hostfile", "launcher", "leave_out",
                                   "micro_batch_size", "precision", "ranks", "ranks_per_node",
                                   "reducer", "repeats", "seed", "shard_ranks"}));
}

TEST(KeyDocs, TheSchemaIsThatOfTheTable) { expect_file(kSchema, config_schema().dump(2) + "\n"); }

TEST(KeyDocs, ThePageHoldsTheTables) {
  const std::string page = read(kPage), end = "<!-- end of keys -->";
  const std::size_t from = page.find('\n', page.find("<!-- keys:")), to = page.find(end);
  ASSERT_NE(to, page.npos);
  expect_file(kPage, page.substr(0, from + 1) + key_tables() + "\n" + page.substr(to));
}

}  // namespace
}  // namespace scalemark::key_docs_test
