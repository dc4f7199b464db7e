// What is written about the keys, made from the key table: the JSON schema of configuration files
// and the table in docs/configuration.md. Tests hold both files against these functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace scalemark {

/// docs/schema/config.schema.json (JSON Schema 2020-12).
nlohmann::ordered_json config_schema();

/// One Markdown table a group: key, legal values, default, role, meaning.
std::string key_tables();

}  // namespace scalemark
