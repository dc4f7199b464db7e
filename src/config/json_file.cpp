// See json_file.hpp.
#include "config/json_file.hpp"

#include <fmt/format.h>

#include "config/input_file.hpp"
#include "config/json_text.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {

Json parse_json_object(std::string_view text, std::string_view name, std::string_view what) {
  if (text.size() > kLargestText)
    throw ConfigError(
        fmt::format("{}: larger than {} bytes, the limit of a {}", name, kLargestText, what));
  try {
    Json document = parse_json_text(text, kDeepestText);
    if (document.is_object()) return document;
  } catch (const JsonFault& fault) {
    throw ConfigError(fmt::format("{}: {}", name, fault.what()));
  }
  throw ConfigError(
      fmt::format("{}: a {} is one JSON object such as {{\"model\": \"resnet50\"}}", name, what));
}

std::string read_json_text(const std::filesystem::path& path, std::string_view what) {
  try {
    return read_input_file(path, kLargestText);
  } catch (const InputFault& fault) {
    throw ConfigError(
        fmt::format("{}: {}; give the path of a JSON {}", path.string(), fault.what(), what));
  }
}

Json read_json_object(const std::filesystem::path& path, std::string_view what) {
  return parse_json_object(read_json_text(path, what), path.string(), what);
}

std::string pointer_to(const std::string& member) {
  nlohmann::json::json_pointer path;
  path.push_back(member);
  const std::string pointer = path.to_string();
  const std::string shown = quote(pointer);
  return shown == '"' + pointer + '"' ? pointer : shown;
}

}  // namespace scalemark
