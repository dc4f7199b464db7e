// Lists the subcommands of `scalemark`, one in each row. The overview, the dispatch, the answer to
// a misspelt name, the manual page and the shell completion all come from this table.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "config/flags.hpp"
#include "error.hpp"

namespace scalemark {

// The functions below are shared by the subcommands: they deal with their words, and with who may
// call them.

struct CommandLine {
  std::vector<std::string> arguments;  ///< after the subcommand
  char** argv;                         ///< all words, for the engine that takes over
};

/// Returns true on the rank that prints: the only one, or rank 0 of a launch.
bool speaks();

/// Refuses a command that launches others among the ranks of a launch. Throws ConfigError "why:
/// start it once ...".
void refuse_ranks(const std::string& why);

/// Each subcommand has two functions in commands/NAME.cpp (those of the engine in measure.cpp): one
/// reads the words (ConfigError where they are wrong) and makes the call; the other returns the
/// table of its flags.
namespace commands {
ExitCode run(const CommandLine& line);
CommandHelp run_help(const CommandLine& line);
ExitCode scale(const CommandLine& line);
CommandHelp scale_help(const CommandLine& line);
ExitCode infer(const CommandLine& line);
CommandHelp infer_help(const CommandLine& line);
ExitCode preflight(const CommandLine& line);
CommandHelp preflight_help(const CommandLine& line);
ExitCode join_parts(const CommandLine& line);
CommandHelp join_parts_help(const CommandLine& line);
ExitCode sweep(const CommandLine& line);
CommandHelp sweep_help(const CommandLine& line);
ExitCode tune(const CommandLine& line);
CommandHelp tune_help(const CommandLine& line);
ExitCode study(const CommandLine& line);
CommandHelp study_help(const CommandLine& line);
ExitCode instances(const CommandLine& line);
CommandHelp instances_help(const CommandLine& line);
ExitCode compare(const CommandLine& line);
CommandHelp compare_help(const CommandLine& line);
ExitCode gate(const CommandLine& line);
CommandHelp gate_help(const CommandLine& line);
ExitCode project(const CommandLine& line);
CommandHelp project_help(const CommandLine& line);
ExitCode export_table(const CommandLine& line);
CommandHelp export_table_help(const CommandLine& line);
ExitCode report(const CommandLine& line);
CommandHelp report_help(const CommandLine& line);
ExitCode list(const CommandLine& line);
CommandHelp list_help(const CommandLine& line);
ExitCode clean(const CommandLine& line);
CommandHelp clean_help(const CommandLine& line);
ExitCode completion(const CommandLine& line);
CommandHelp completion_help(const CommandLine& line);
}  // namespace commands

struct Subcommand {
  std::string_view name;     ///< small letters
  std::string_view purpose;  ///< in one line
  ExitCode (*call)(const CommandLine& line);
  CommandHelp (*help)(const CommandLine& line);  ///< the words may choose among its flags
};

/// The subcommands in the order in which they are listed.
inline constexpr auto kSubcommands = std::to_array<Subcommand>({
    {"run", "one measured run over the ranks it was launched with", commands::run,
     commands::run_help},
    {"scale", "a scaling curve in one launch: ranks, repeats, a baseline", commands::scale,
     commands::scale_help},
    {"infer", "forward passes only: throughput and latency", commands::infer, commands::infer_help},
    {"preflight", "health checks of the nodes; --pinning: where the ranks run", commands::preflight,
     commands::preflight_help},
    {"sweep", "fresh launches of many settings in random order", commands::sweep,
     commands::sweep_help},
    {"tune", "the fastest ranks, batch and communication of a job here", commands::tune,
     commands::tune_help},
    {"study", "a published experiment: its figures beside those measured here", commands::study,
     commands::study_help},
    {"instances", "jobs side by side on disjoint cores, GPUs or MIG slices", commands::instances,
     commands::instances_help},
    {"compare", "result sets point by point: difference, interval, significance", commands::compare,
     commands::compare_help},
    {"gate", "is a build slower? two builds side by side, or two sets; for CI", commands::gate,
     commands::gate_help},
    {"project", "what a curve predicts: more ranks, other links, time to solution",
     commands::project, commands::project_help},
    {"export", "records as one flat table: a row a launch, CSV or JSON lines",
     commands::export_table, commands::export_table_help},
    {"join", "one checkpoint of the parts that a run with --shard wrote", commands::join_parts,
     commands::join_parts_help},
    {"report", "a page with plots and a verdict in words, of any results", commands::report,
     commands::report_help},
    {"list", "models, configurations and studies", commands::list, commands::list_help},
    {"clean", "removes from this host what killed processes have left", commands::clean,
     commands::clean_help},
    {"completion", "completion of the command line, for bash, zsh or fish", commands::completion,
     commands::completion_help},
});

/// Returns the table of its flags with the one that every subcommand has: --quiet.
CommandHelp whole_help(const Subcommand& subcommand, const CommandLine& line);

/// Returns what `scalemark --help` prints.
std::string overview();

/// Runs the program. Returns the exit code of the process, or does not return where it becomes the
/// engine.
int front_door(int argc, char** argv);

}  // namespace scalemark
