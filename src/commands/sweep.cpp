// `scalemark sweep PLAN.json --output DIR`: fresh launches of every point of a plan.
#include "launch/sweep.hpp"

#include <fmt/format.h>

#include "commands/launch_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/launch.hpp"
#include "launch/placement.hpp"
#include "report/sweep_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

cxxopts::Options sweep_options() {
  cxxopts::Options options("scalemark sweep",
                           "Fresh launches of every point of a plan, in random order; the same "
                           "command goes on where an earlier one ended.\n");
  options.custom_help("PLAN.json --output DIR [--flag]...");
  options.positional_help("");
  options.add_options()("output", "folder of journal.jsonl, runs/ and logs/",
                        cxxopts::value<std::string>(), "DIR")(
      "dry_run", "print the command of every launch in its order, start nothing")(
      "retry_failed", "launch again what has failed before")(
      "repair", "launch again what is done but has lost its record")(
      "launcher", "auto, mpirun or srun (default: the plan's, else auto)",
      cxxopts::value<std::string>(), "NAME")("hostfile", "hosts of mpirun (default: the plan's)",
                                             cxxopts::value<std::string>(), "FILE")(
      "plan", "", cxxopts::value<std::vector<std::string>>())("h,help", "this text");
  options.parse_positional({"plan"});
  return options;
}

struct SweepRequest {
  SweepPlan plan;
  std::string output;  ///< folder
  bool dry_run = false;
  LaunchedAgain again;
};

SweepRequest read_sweep(const FlagReader& flags) {
  const std::vector<std::string> plans = flags.positionals("plan");
  if (plans.size() != 1)
    throw ConfigError("scalemark sweep takes one plan: scalemark sweep PLAN.json --output DIR");
  SweepRequest request;
  request.plan = read_sweep_plan(plans.front(), environment_lines(), cores_per_host());
  request.dry_run = flags.has("dry_run");
  request.again = {flags.has("retry_failed"), flags.has("repair")};
  if (!flags.has("output") && !request.dry_run)
    throw ConfigError(
        "scalemark sweep: --output DIR is missing: the folder of its journal and records");
  request.output = flags.text("output").value_or("sweep");
  apply_launch_flags(request.plan, flags);
  return request;
}

std::string sweep_help() {
  return sweep_options().help() +
         "\nA plan is described in docs/sweep.md; shipped ones: scalemark list configs.\n"
         "Exit codes: 0 ok, 2 usage, 4 to 7 the most severe of its launches, 6 results or journal "
         "not writable.\n";
}

}  // namespace

ExitCode commands::sweep(const CommandLine& line) {
  if (wants_help(line.arguments)) return print_help(sweep_help());
  refuse_ranks("scalemark sweep launches its ranks itself");
  const SweepRequest request =
      read_sweep(FlagReader(parse_flags(sweep_options(), canonical_flags(line.arguments))));
  if (request.dry_run) {
    print_sweep(request.plan, request.output);
    return ExitCode::ok;
  }
  const HeldSignals until_the_table_is_printed;
  SweepProgress progress;
  const SweepEnd end = run_sweep(request.plan, request.output, request.again, progress);
  show(sweep_table(end.results, request.plan.standard));
  return end.code;
}

}  // namespace scalemark
