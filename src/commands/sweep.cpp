// Implements `scalemark sweep PLAN.json --output DIR`, which makes fresh launches of every point of
// a plan.
#include "launch/sweep.hpp"

#include <fmt/format.h>

#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "record/write.hpp"
#include "report/sweep_table.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

struct SweepRequest {
  SweepPlan plan;
  std::string output;  ///< folder
  bool dry_run = false, json = false;
  LaunchedAgain again;
};

SweepRequest read_sweep(const FlagReader& flags) {
  const std::vector<std::string> plans = flags.positionals("plan");
  if (plans.size() != 1)
    throw ConfigError("scalemark sweep takes one plan: scalemark sweep PLAN.json --output DIR");
  SweepRequest request;
  request.plan =
      read_sweep_plan(plans.front(), environment_lines(), cores_per_host(), flags.texts("value"));
  for (const std::string& warning : request.plan.warnings) warn(warning);
  request.dry_run = flags.has("dry_run");
  request.json = flags.has("json");
  if (request.dry_run && request.json)
    throw ConfigError("scalemark sweep: --dry_run prints commands, which --json has none of");
  request.again = {flags.has("retry_failed"), flags.has("repair")};
  if (!flags.has("output") && !request.dry_run)
    throw ConfigError(
        "scalemark sweep: --output DIR is missing: the folder of its journal and records");
  request.output = flags.text("output").value_or("sweep");
  apply_launch_flags(request.plan, flags);
  return request;
}

}  // namespace

CommandHelp commands::sweep_help(const CommandLine&) {
  return {
      "sweep",
      "Fresh launches of every point of a plan, in random order; the same command goes on where an "
      "earlier one ended.",
      {"PLAN.json --output DIR [--flag]..."},
      {{"Sweep",
        {{.name = "output",
          .value_name = "DIR",
          .text = "folder of journal.jsonl, runs/ and logs/",
          .often_used = true},
         {.name = "dry_run",
          .text = "print the command of every launch in its order, start nothing",
          .often_used = true},
         {.name = "json", .text = "the table of the end as JSON on stdout, nothing else"},
         {.name = "retry_failed",
          .text = "launch again what has failed before",
          .often_used = true},
         {.name = "repair",
          .text = "launch again what is done but has lost its record",
          .often_used = true},
         value_flag(),
         launcher_flag("the plan's, else auto"),
         hostfile_flag("the plan's")}},
       container_flags()},
      {"scalemark list configs", "scalemark sweep configs/sweeps/threads.json --dry_run",
       "scalemark sweep configs/sweeps/threads.json --output results/threads"},
      "A plan is described in docs/sweep.md; shipped ones: scalemark list configs.\n"
      "Exit codes: 0 ok, 2 usage, 4 to 7 the most severe of its launches, 6 results or journal not "
      "writable.\n"};
}

ExitCode commands::sweep(const CommandLine& line) {
  refuse_ranks("scalemark sweep launches its ranks itself");
  const SweepRequest request = read_sweep(FlagReader(sweep_help(line), "plan", line.arguments));
  if (request.dry_run) {
    print_sweep(request.plan, request.output);
    return ExitCode::ok;
  }
  const HeldSignals until_the_table_is_printed;
  SweepProgress progress;
  const SweepEnd end = run_sweep(request.plan, request.output, request.again, progress);
  const SweepSummary points = summary_of(end.results, request.plan.standard);
  if (request.json)
    print_data(record_text(part_json(points)));
  else
    print_view(sweep_table(points));
  return end.code;
}

}  // namespace scalemark
