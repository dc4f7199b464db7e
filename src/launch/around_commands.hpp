// The commands of a plan before and after a launch: what they print is kept, and what they start
// ends with them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/sweep_commands.hpp"
#include "error.hpp"

namespace scalemark {

enum class Moment { before, after };
std::string to_string(Moment moment);

struct CommandsEnd {
  /// environment where one failed or can't be started, timeout where it took too long.
  ExitCode code = ExitCode::ok;
  std::string reason;    ///< names the first that failed, and how
  bool stopped = false;  ///< from outside: a signal reached us meanwhile
};

/// Runs them one by one on this machine, each for at most `limit_seconds`; `log` gets what they
/// print and is there only if there are any. Before a launch the first that fails is the last, and
/// a stop ends it; after one all of them run whatever happens, and only a second signal ends one.
CommandsEnd run_commands(const std::vector<CommandWords>& commands, Moment moment,
                         double limit_seconds, const std::filesystem::path& log);

}  // namespace scalemark
