// The JSON layer of the configuration: one flat object of keys.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/keys.hpp"

namespace scalemark {

/// The key that a file calls `written`, perhaps by its former name. ConfigError, beginning with
/// `place`, for one of a later version and an unknown one (with the nearest).
const Key& known_key(const std::string& written, const std::string& place);

/// The checked values of a configuration, by key. "$schema" and "description" are allowed and left
/// out. `name` is what messages call the text. Throws ConfigError with `name` and the JSON pointer
/// (or line and column): malformed, deeper than 32, larger than 1 MiB, a key twice, unknown (with
/// the nearest), wrong type, out of range.
/// `warnings`: receives what to write in place of former names.
nlohmann::ordered_json parse_config_text(std::string_view text, std::string_view name,
                                         std::vector<std::string>* warnings = nullptr);

/// The same of a file. ConfigError also where it does not exist or can't be read.
nlohmann::ordered_json read_config_file(const std::filesystem::path& path,
                                        std::vector<std::string>* warnings = nullptr);

}  // namespace scalemark
