// See file_layer.hpp.
#include "config/file_layer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "config/keys.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestFile = 1 << 20;
constexpr int kDeepest = 32;

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) names.push_back(key.name);
  return names;
}

/// nlohmann's words without its exception number: "parse error at line 2, column 5: ...".
std::string plain_message(const Json::exception& error) {
  const std::string message = error.what();
  const std::size_t end = message.find("] ");
  return end == message.npos ? message : message.substr(end + 2);
}

Json parse_json(std::string_view text, std::string_view name) {
  std::set<std::string> seen;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest)
      throw ConfigError(fmt::format("{}: nested deeper than {} levels", name, kDeepest));
    if (event == Json::parse_event_t::key && depth == 1 &&
        !seen.insert(parsed.get<std::string>()).second)
      throw ConfigError(
          fmt::format("{}: the key {} is there twice", name, quote(parsed.get<std::string>())));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("{}: {}", name, plain_message(error)));
  }
}

const Key& known_key(const std::string& written, const std::string& place) {
  const std::string name = canonical_name(written);
  if (const Key* key = find_key(name)) return *key;
  for (const std::string& planned : planned_flags())
    if (planned == name) throw ConfigError(fmt::format("{}: not available in this version", place));
  throw ConfigError(fmt::format("{}: unknown key{}", place, did_you_mean(name, key_names())));
}

/// A JSON pointer (RFC 6901) to a member of the outermost object, safe to print.
std::string pointer_to(const std::string& member) {
  nlohmann::json::json_pointer path;
  path.push_back(member);
  const std::string pointer = path.to_string();
  const std::string shown = quote(pointer);
  return shown == '"' + pointer + '"' ? pointer : shown;
}

}  // namespace

Json parse_config_text(std::string_view text, std::string_view name) {
  if (text.size() > kLargestFile)
    throw ConfigError(
        fmt::format("{}: larger than {} bytes, the limit of a configuration", name, kLargestFile));
  const Json document = parse_json(text, name);
  if (!document.is_object())
    throw ConfigError(fmt::format(
        "{}: a configuration is one JSON object such as {{\"model\": \"resnet50\"}}", name));
  Json values = Json::object();
  for (const auto& [member, value] : document.items()) {
    const std::string place = fmt::format("{}: {}", name, pointer_to(member));
    if (member == "$schema" || member == "description") {
      if (!value.is_string()) throw ConfigError(fmt::format("{}: must be a text", place));
      continue;
    }
    const Key& key = known_key(member, place);
    if (values.contains(key.name))
      throw ConfigError(fmt::format("{}: the key is there twice", place));
    values[key.name] = check_value(key, value, place);
  }
  return values;
}

Json read_config_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  check_text(name, "--config");
  std::error_code status;
  if (!std::filesystem::exists(path, status))
    throw ConfigError(fmt::format("{}: no such file; give the path of a JSON configuration", name));
  if (std::filesystem::is_directory(path, status))
    throw ConfigError(fmt::format("{}: a folder, not a JSON configuration", name));
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    throw ConfigError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_config_text(text, name);
}

}  // namespace scalemark
