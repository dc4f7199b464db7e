// See json_file.hpp.
#include "config/json_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr int kDeepest = 32;

/// nlohmann's words without its exception number: "parse error at line 2, column 5: ...".
std::string plain_message(const Json::exception& error) {
  const std::string message = error.what();
  const std::size_t end = message.find("] ");
  return end == message.npos ? message : message.substr(end + 2);
}

}  // namespace

Json parse_json_object(std::string_view text, std::string_view name, std::string_view what) {
  if (text.size() > kLargestFile)
    throw ConfigError(
        fmt::format("{}: larger than {} bytes, the limit of a {}", name, kLargestFile, what));
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
    Json document = Json::parse(text, watch);
    if (document.is_object()) return document;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("{}: {}", name, plain_message(error)));
  }
  throw ConfigError(
      fmt::format("{}: a {} is one JSON object such as {{\"model\": \"resnet50\"}}", name, what));
}

std::string read_json_text(const std::filesystem::path& path, std::string_view what) {
  const std::string name = path.string();
  std::error_code status;
  if (!std::filesystem::exists(path, status))
    throw ConfigError(fmt::format("{}: no such file; give the path of a JSON {}", name, what));
  if (std::filesystem::is_directory(path, status))
    throw ConfigError(fmt::format("{}: a folder, not a JSON {}", name, what));
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    throw ConfigError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string pointer_to(const std::string& member) {
  nlohmann::json::json_pointer path;
  path.push_back(member);
  const std::string pointer = path.to_string();
  const std::string shown = quote(pointer);
  return shown == '"' + pointer + '"' ? pointer : shown;
}

}  // namespace scalemark
