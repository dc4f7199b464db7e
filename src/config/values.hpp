// From what a user wrote, as text or JSON, to a checked value of a key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "config/keys.hpp"

namespace scalemark {

/// Checks type, range and words; returns the value in canonical form (NHWC becomes channels_last),
/// null for "unset". `place` begins every message: "--num_batches", "SCALEMARK_SEED", "run.json:
/// /seed". Throws ConfigError.
nlohmann::ordered_json check_value(const Key& key, const nlohmann::ordered_json& value,
                                   std::string_view place);

/// The same for a flag or an environment variable.
nlohmann::ordered_json parse_value(const Key& key, std::string_view text, std::string_view place);

/// A setting as it was written, and as it is called now.
struct WrittenSetting {
  const Key* key;
  nlohmann::ordered_json value;  ///< checked
  std::string warning;           ///< empty; of a former name what to write instead
};

/// Of a flag or a variable; `name` is that of a key, perhaps its former one.
WrittenSetting read_written(std::string_view name, std::string_view text, std::string_view place);
/// The same of a file.
WrittenSetting check_written(std::string_view name, const nlohmann::ordered_json& value,
                             std::string_view place);

/// The name that a key has now.
std::string current_name(const std::string& name);
/// The name and value that a record's setting has now; those that were never called otherwise stay.
std::pair<std::string, nlohmann::ordered_json> current_setting(const std::string& name,
                                                               const nlohmann::ordered_json& value);

/// Throws ConfigError for an empty text, control characters (NUL, newline, ...), more than 4096
/// bytes, bytes that are not UTF-8 (the record could not hold them).
void check_text(std::string_view text, std::string_view place);

}  // namespace scalemark
