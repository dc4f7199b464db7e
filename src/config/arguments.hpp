// The command line layer: flags from the key table.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/flags.hpp"
#include "config/load.hpp"

namespace scalemark {

/// What a command line says, in its order; later settings win.
struct Arguments {
  std::vector<std::string> config_files;
  /// Canonical key, text, and the place for messages ("--seed", "--set seed"). `config` and `set`
  /// are resolved.
  struct Setting {
    std::string key, text, place;
  };
  std::vector<Setting> settings;
};

/// Throws ConfigError: unknown flag (with the nearest), a flag of another subcommand or a later
/// version, a missing value, a word that is no flag.
Arguments parse_arguments(Command command, std::span<const std::string> arguments);

/// Of a subcommand whose flags are the keys.
CommandHelp key_help(Command command);

/// Whether --NAME without `=` has the next word as its value: keys other than booleans, of whatever
/// command, and --config and --set.
bool key_takes_value(const std::string& name);

}  // namespace scalemark
