// What a sweep runs around its launches, and the levels that it alternates between: what no setting
// and no variable reaches, such as the rate of a link.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/sweep_settings.hpp"

namespace scalemark {

/// A program and its arguments, each one word, never through a shell.
using CommandWords = std::vector<std::string>;

struct LaunchCommands {
  std::vector<CommandWords> before, after;  ///< in the order in which they run
  bool empty() const { return before.empty() && after.empty(); }
};

/// A level of "alternate".
struct Level {
  std::string name;                 ///< "level"
  nlohmann::ordered_json settings;  ///< "set": of its launches alone
  LaunchCommands commands;
};

/// "before" and "after" of a plan, a point or a level; `has_levels`: the plan alternates, so that
/// {level} stands for something. `place` begins every message. Throws ConfigError.
LaunchCommands read_commands(const nlohmann::ordered_json& object, bool has_levels,
                             const std::string& place);

/// "alternate" of a plan. Throws ConfigError: fewer than two levels, names that are not unique.
std::vector<Level> read_levels(const SettingsContext& context, const nlohmann::ordered_json& levels,
                               const std::string& place);

/// Commands of `inner` within those of `outer`: later before the launch, earlier after it.
LaunchCommands nested(const LaunchCommands& outer, const LaunchCommands& inner);

/// What {ranks}, {repeat} and {level} in the words of a command stand for.
struct LaunchWords {
  std::string ranks, repeat, level;
};
CommandWords filled_in(const CommandWords& command, const LaunchWords& words);

}  // namespace scalemark
