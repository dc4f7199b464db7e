// What subcommands share: their words, and who may call them.
#pragma once

#include <string>
#include <vector>

#include "error.hpp"

namespace scalemark {

struct CommandLine {
  std::vector<std::string> arguments;  ///< after the subcommand
  char** argv;                         ///< all words, for the engine that takes over
};

/// True on the rank that speaks: the only one, or rank 0 of a launch.
bool speaks();

/// Commands that launch others are not ranks of a launch: ConfigError "why: start it once ...".
void refuse_ranks(const std::string& why);

}  // namespace scalemark
