// Defines the key table: every setting of `run`, `scale`, `infer` and `preflight` with its type,
// legal values, role, help and commands. Flags, JSON files, SCALEMARK_* variables, help,
// documentation, the record's config and its hash all come from here. The rows stand beside their
// fields in config/keys/.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

enum class Kind { boolean, integer, real, text, choice, integers, injection, schedule };

/// The words that some commands use for a key in place of its own.
struct OtherWords {
  Commands commands{};
  std::string value_name, help;
  std::string standard;  ///< what happens without a value
};

/// The former name of a key, and its former words. Flags, files and variables take it with a
/// warning, and older records have it.
struct FormerKey {
  std::string name;
  std::map<std::string, std::string> values;  ///< by the former word: the one in its place
};

struct Key {
  std::string name;  ///< with underscores, as in files
  Kind kind = Kind::text;
  Role role = Role::identity;
  Commands commands{};  ///< whose flag it is; a file or variable may hold it for others
  Traits traits{};
  std::string group;       ///< heading in the help
  std::string value_name;  ///< placeholder in the help; empty for booleans
  std::string help;
  double lowest = 0, highest = 0;              ///< legal range of integer and real, both included
  std::vector<std::string> choices;            ///< legal words of choice
  std::map<std::string, std::string> aliases;  ///< choices that stand for another one
  std::vector<std::string> words;              ///< legal beside the numbers of integer
  std::string unset;  ///< what happens without a value; empty: there is a default
  std::optional<FormerKey> former;
  OtherWords other_words{};  ///< where it means something else
  bool often_used = false;   ///< in the help that fits a screen
  bool listed = false;       ///< `scale` also takes a list, a curve each: an array, or a,b,c
  bool by_point = false;     ///< of which each point of the one curve takes its own
  std::function<nlohmann::ordered_json(const RunConfig&)> get;
  std::function<void(RunConfig&, const nlohmann::ordered_json&)>
      set;  ///< of a value from check_value()
};

/// Returns every key, in the order of help and records.
const std::vector<Key>& all_keys();

/// Returns whether records of this subcommand show the key. Those of `run` also show keys that only
/// `scale` has.
bool recorded(const Key& key, Command command);

/// Returns the key of a canonical name, or null for an unknown one.
const Key* find_key(std::string_view name);

/// Returns the key that formerly had this name, or null for any other name.
const Key* find_former_key(std::string_view name);

/// Returns the key that has or formerly had this name, or null for an unknown name.
const Key* find_written_key(std::string_view name);

/// Returns whether there is a key of this name with this trait.
bool is_key(std::string_view name, Trait trait);

/// Returns a text such as "1 to 1000", "fp32, bf16" or "true or false", for messages, help and
/// documentation.
std::string legal_values(const Key& key);

/// Returns the default as a user would write it, or what happens without a value.
std::string default_text(const Key& key);

// The functions below turn what a user wrote, as text or JSON, into a checked value of a key.

/// Checks type, range and words. Returns the value in canonical form (NHWC becomes channels_last),
/// null for "unset". `place` begins every message: "--num_batches", "SCALEMARK_SEED", "run.json:
/// /seed". Throws ConfigError.
nlohmann::ordered_json check_value(const Key& key, const nlohmann::ordered_json& value,
                                   std::string_view place);

/// Does the same for a flag or an environment variable.
nlohmann::ordered_json parse_value(const Key& key, std::string_view text, std::string_view place);

/// A setting as it was written, and its present name.
struct WrittenSetting {
  const Key* key;
  nlohmann::ordered_json value;  ///< checked
  std::string warning;           ///< empty; of a former name what to write instead
};

/// Reads the setting of a flag or a variable. `name` is that of a key, perhaps its former one.
WrittenSetting read_written(std::string_view name, std::string_view text, std::string_view place);
/// Reads the setting of a file.
WrittenSetting check_written(std::string_view name, const nlohmann::ordered_json& value,
                             std::string_view place);

/// Returns the present name of a key.
std::string current_name(const std::string& name);
/// Returns the present name and value of a record's setting. Those that never had another name
/// stay.
std::pair<std::string, nlohmann::ordered_json> current_setting(const std::string& name,
                                                               const nlohmann::ordered_json& value);

/// Checks a text. Throws ConfigError for an empty text, control characters (NUL, newline, ...),
/// more than 4096 bytes, bytes that are not UTF-8 (the record could not hold them).
void check_text(std::string_view text, std::string_view place);

}  // namespace scalemark
