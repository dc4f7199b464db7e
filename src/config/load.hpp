// Layers of configuration: defaults <- JSON file <- SCALEMARK_* variables <- command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// Reads every layer and validates. `arguments` excludes the program and the subcommand; `_` and
/// `-` are alike in flags; `environment` is "NAME=value" lines. Throws ConfigError: unknown key
/// (with the nearest), wrong type, out of range (with the range and, for files, file name and JSON
/// pointer), malformed, too deep or too large JSON, inconsistent keys.
LoadedConfig load_config(Command command, std::span<const std::string> arguments,
                         std::span<const std::string> environment);

/// The process's variables, "NAME=value".
std::vector<std::string> environment_lines();

/// Same, from the process: argv after the subcommand and ::environ.
LoadedConfig load_config(Command command, int argc, char** argv);

}  // namespace scalemark
