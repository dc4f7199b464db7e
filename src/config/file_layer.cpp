// See file_layer.hpp.
#include "config/file_layer.hpp"

#include <fmt/format.h>

#include "config/json_file.hpp"
#include "config/keys.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) names.push_back(key.name);
  return names;
}

}  // namespace

const Key& known_key(const std::string& written, const std::string& place) {
  const std::string name = canonical_name(written);
  if (const Key* key = find_written_key(name)) return *key;
  throw ConfigError(fmt::format("{}: unknown key{}", place, did_you_mean(name, key_names())));
}

Json parse_config_text(std::string_view text, std::string_view name,
                       std::vector<std::string>* warnings) {
  const Json document = parse_json_object(text, name, "configuration");
  Json values = Json::object();
  for (const auto& [member, value] : document.items()) {
    const std::string place = fmt::format("{}: {}", name, pointer_to(member));
    if (member == "$schema" || member == "description") {
      if (!value.is_string()) throw ConfigError(fmt::format("{}: must be a text", place));
      continue;
    }
    const Key& key = known_key(member, place);
    if (values.contains(key.name))
      throw ConfigError(fmt::format("{}: the key {} is there twice", place, key.name));
    const WrittenSetting written = check_written(canonical_name(member), value, place);
    if (warnings && !written.warning.empty()) warnings->push_back(written.warning);
    values[key.name] = written.value;
  }
  return values;
}

Json read_config_file(const std::filesystem::path& path, std::vector<std::string>* warnings) {
  check_text(path.string(), "--config");
  return parse_config_text(read_json_text(path, "configuration"), path.string(), warnings);
}

}  // namespace scalemark
