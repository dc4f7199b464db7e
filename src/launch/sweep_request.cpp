// The command line of `scalemark sweep`.
#include <fmt/format.h>

#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/launch_flags.hpp"
#include "launch/placement.hpp"
#include "launch/sweep.hpp"

namespace scalemark {
namespace {

cxxopts::Options make_options() {
  cxxopts::Options options("scalemark sweep",
                           "Fresh launches of every point of a plan, in random order; the same "
                           "command goes on where an earlier one ended.\n");
  options.custom_help("PLAN.json --output DIR [--flag]...");
  options.positional_help("");
  options.add_options()("output", "folder of journal.jsonl, runs/ and logs/",
                        cxxopts::value<std::string>(), "DIR")(
      "dry_run", "print the command of every launch in its order, start nothing")(
      "retry_failed", "launch again what has failed before")(
      "launcher", "auto, mpirun or srun (default: the plan's, else auto)",
      cxxopts::value<std::string>(), "NAME")("hostfile", "hosts of mpirun (default: the plan's)",
                                             cxxopts::value<std::string>(), "FILE")(
      "plan", "", cxxopts::value<std::vector<std::string>>())("h,help", "this text");
  options.parse_positional({"plan"});
  return options;
}

SweepRequest request_from(const FlagReader& flags) {
  const std::vector<std::string> plans = flags.texts("plan");
  if (plans.size() != 1)
    throw ConfigError("scalemark sweep takes one plan: scalemark sweep PLAN.json --output DIR");
  SweepRequest request;
  request.plan = read_sweep_plan(plans.front(), environment_lines(), cores_per_host());
  request.dry_run = flags.has("dry_run");
  request.retry_failed = flags.has("retry_failed");
  if (!flags.has("output") && !request.dry_run)
    throw ConfigError(
        "scalemark sweep: --output DIR is missing: the folder of its journal and records");
  request.output = flags.text("output").value_or("sweep");
  apply_launch_flags(request.plan, flags);
  return request;
}

}  // namespace

std::string sweep_help() {
  return make_options().help() +
         "\nA plan is described in docs/sweep.md; shipped ones: scalemark list configs.\n"
         "Exit codes: 0 ok, 2 usage, 4 to 7 the most severe of its launches, 6 results or journal "
         "not writable.\n";
}

SweepRequest read_sweep_request(std::span<const std::string> arguments) {
  return request_from(FlagReader(parse_flags(make_options(), canonical_flags(arguments))));
}

}  // namespace scalemark
