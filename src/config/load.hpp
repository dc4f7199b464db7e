// Layers of configuration: defaults <- JSON file <- SCALEMARK_* variables <- command line.
#pragma once

#include <optional>
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

/// Leaves the configuration for the program that this process becomes by exec. Where that fails,
/// that program reads every layer itself.
void hand_over_config(const LoadedConfig& loaded) noexcept;

/// What the program that became this one has handed over, once; nullopt where there is none, or one
/// of another command.
std::optional<LoadedConfig> handed_config(Command command) noexcept;

}  // namespace scalemark
