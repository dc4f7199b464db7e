// JSON that a person wrote: read with limits, and messages that name the place.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace scalemark {

/// Throws ConfigError with `name` and what is wrong: larger than 1 MiB, malformed (with line and
/// column), deeper than 32, not an object, a key of any object in it twice. `what`:
/// "configuration", "plan".
nlohmann::ordered_json parse_json_object(std::string_view text, std::string_view name,
                                         std::string_view what);

/// The text of a regular file of at most 1 MiB; ConfigError where it is none.
std::string read_json_text(const std::filesystem::path& path, std::string_view what);

/// The JSON object of such a file; throws ConfigError as both do.
nlohmann::ordered_json read_json_object(const std::filesystem::path& path, std::string_view what);

/// A JSON pointer (RFC 6901) to a member of the outermost object, safe to print.
std::string pointer_to(const std::string& member);

}  // namespace scalemark
