// Reads the layers of a configuration: defaults <- JSON file <- SCALEMARK_* variables <- command
// line.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/run_config.hpp"

namespace scalemark {

// The functions below read the JSON layer of the configuration, which is one flat object of keys.

/// Returns the key that a file calls `written`. Throws ConfigError, beginning with `place`, for a
/// key of a later version and an unknown one (with the nearest).
const Key& known_key(const std::string& written, const std::string& place);

/// Returns the checked values of a configuration, by key. "$schema" and "description" are allowed
/// and left out. `name` is what messages call the text. Throws ConfigError with `name` and the JSON
/// pointer (or line and column): malformed, deeper than 32, larger than 1 MiB, a key twice, unknown
/// (with the nearest), wrong type, out of range. `warnings`: receives what to write in place of
/// former names.
nlohmann::ordered_json parse_config_text(std::string_view text, std::string_view name,
                                         std::vector<std::string>* warnings = nullptr);

/// Returns the same for a file. Throws ConfigError also where it does not exist or cannot be read.
nlohmann::ordered_json read_config_file(const std::filesystem::path& path,
                                        std::vector<std::string>* warnings = nullptr);

// The functions below read the command line layer, whose flags come from the key table.

/// The settings of a command line, in their order. Later settings win.
struct Arguments {
  std::vector<std::string> config_files;
  /// Canonical key, text, and the place for messages ("--seed", "--set seed"). `config` and `set`
  /// are resolved.
  struct Setting {
    std::string key, text, place;
  };
  std::vector<Setting> settings;
};

/// Parses the words after a subcommand. Throws ConfigError: unknown flag (with the nearest), a flag
/// of another subcommand or a later version, a missing value, a word that is no flag.
Arguments parse_arguments(Command command, std::span<const std::string> arguments);

/// Returns the help of a subcommand whose flags are the keys.
CommandHelp key_help(Command command);

/// Returns whether --NAME without `=` has the next word as its value: keys other than booleans, of
/// whatever command, and --config, --set and --again.
bool key_takes_value(const std::string& name);

/// Reads every layer and validates. `arguments` excludes the program and the subcommand; `_` and
/// `-` are alike in flags; `environment` is "NAME=value" lines. Throws ConfigError: unknown key
/// (with the nearest), wrong type, out of range (with the range and, for files, file name and JSON
/// pointer), malformed, too deep or too large JSON, inconsistent keys.
LoadedConfig load_config(Command command, std::span<const std::string> arguments,
                         std::span<const std::string> environment);

/// Returns the variables of this process as "NAME=value".
std::vector<std::string> environment_lines();

/// Leaves the configuration for the program that this process becomes by exec. Where that fails,
/// that program reads every layer itself.
void hand_over_config(const LoadedConfig& loaded) noexcept;

/// Returns, once, the configuration that the program that became this one has handed over, or
/// nullopt where there is none, or one of another command.
std::optional<LoadedConfig> handed_config(Command command) noexcept;

}  // namespace scalemark
