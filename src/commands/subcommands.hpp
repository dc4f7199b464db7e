// The subcommands of `scalemark`, a row each: overview, dispatch, what a misspelt name is told, the
// manual page and the shell completion all come from this table.
#pragma once

#include <array>
#include <string_view>

#include "commands/command_line.hpp"
#include "error.hpp"

namespace scalemark {

/// One each, in commands/NAME.cpp (those of the engine in measure.cpp): prints the help where it is
/// asked for, reads the words (ConfigError where they are wrong) and makes the call.
namespace commands {
ExitCode run(const CommandLine& line);
ExitCode scale(const CommandLine& line);
ExitCode infer(const CommandLine& line);
ExitCode preflight(const CommandLine& line);
ExitCode sweep(const CommandLine& line);
ExitCode instances(const CommandLine& line);
ExitCode compare(const CommandLine& line);
ExitCode gate(const CommandLine& line);
ExitCode project(const CommandLine& line);
ExitCode list(const CommandLine& line);
ExitCode clean(const CommandLine& line);
}  // namespace commands

struct Subcommand {
  std::string_view name;     ///< small letters
  std::string_view purpose;  ///< in one line
  ExitCode (*call)(const CommandLine& line);
};

/// In the order in which they are listed.
inline constexpr auto kSubcommands = std::to_array<Subcommand>({
    {"run", "one measured run over the ranks it was launched with", commands::run},
    {"scale", "a scaling curve in one launch: ranks, repeats, a no-communication baseline",
     commands::scale},
    {"infer", "forward passes only: throughput and latency, batch or single stream",
     commands::infer},
    {"preflight", "health checks of the nodes that the ranks run on; --pinning: where they run",
     commands::preflight},
    {"sweep",
     "fresh launches of many settings in random order: scalemark sweep PLAN.json --output DIR",
     commands::sweep},
    {"instances",
     "jobs side by side on disjoint cores, GPUs or MIG slices: each alone and with neighbours",
     commands::instances},
    {"compare", "result sets point by point: scalemark compare A B ...", commands::compare},
    {"gate", "is a build slower? two builds launched side by side, or two result sets; for CI",
     commands::gate},
    {"project",
     "what a cost model fitted to a curve predicts: more ranks, other links, time to solution",
     commands::project},
    {"list", "models and configurations: scalemark list [models|configs]", commands::list},
    {"clean", "removes from this host what killed processes have left", commands::clean},
});

/// Of later versions.
inline constexpr std::array<std::string_view, 2> kLaterSubcommands{"study", "report"};

}  // namespace scalemark
