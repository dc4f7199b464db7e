// See front_door.hpp.
#include "launch/front_door.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "config/arguments.hpp"
#include "config/curves.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "launch/compare.hpp"
#include "launch/dry_run.hpp"
#include "launch/engine_start.hpp"
#include "launch/gate.hpp"
#include "launch/instances.hpp"
#include "launch/lists.hpp"
#include "launch/project.hpp"
#include "launch/scale_job.hpp"
#include "launch/sweep.hpp"
#include "platform/announced_rank.hpp"
#include "platform/platform.hpp"
#include "result/preflight_reference.hpp"

namespace scalemark {
namespace {

constexpr const char* kOverview =
    R"(scalemark measures how well training of standard models scales from one rank to many.

Usage: scalemark SUBCOMMAND [--flag value]...

  run        one measured run over the ranks it was launched with
  scale      a scaling curve in one launch: ranks, repeats, a no-communication baseline
  infer      forward passes only: throughput and latency, batch or single stream
  preflight  health checks of the nodes that the ranks run on; --pinning: where they run
  sweep      fresh launches of many settings in random order: scalemark sweep PLAN.json --output DIR
  instances  jobs side by side on disjoint cores, GPUs or MIG slices: each alone and with neighbours
  compare    result sets point by point: scalemark compare A B ...
  gate       is a build slower? two builds launched side by side, or two result sets; for CI
  project    what a cost model fitted to a curve predicts: more ranks, other links, time to solution
  list       models and configurations: scalemark list [models|configs]

  scalemark SUBCOMMAND --help   every flag, grouped
  scalemark --version           what this program was built with

Example: scalemark scale --model resnet50 --ranks 1,2 --repeats 3 --output curve.json
)";

const std::vector<std::string> kCommands{"run",       "scale",   "infer", "preflight", "sweep",
                                         "instances", "compare", "gate",  "project",   "list"};
constexpr std::array kLater{"study", "report"};

/// True on the rank that speaks: the only one, or rank 0 of a launch.
bool speaks() {
  const char* rank = announced_rank();
  return !rank || std::string(rank) == "0";
}

int help(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

/// Of ranks that a launcher has started already: one of them speaks.
int show_plan(Command command, const RunConfig& config, int tasks) {
  const bool curve = command == Command::scale;
  const auto ranks = !curve                 ? std::vector<std::int64_t>{tasks}
                     : config.ranks.empty() ? default_ranks(tasks)
                                            : config.ranks;
  if (curve) check_points(config, ranks);
  const std::string text = plan_text(config, ranks, curve);
  if (speaks()) std::fputs(text.c_str(), stdout);
  return 0;
}

/// Open MPI would end the process within MPI_Init. One task needs nobody and runs alone: it is
/// often a shell of `srun --pty`, which Open MPI recognises by the step's number.
void leave_srun_without_pmi() {
  const auto environment = process_environment();
  if (!is_srun_without_pmi(environment)) return;
  if (const auto tasks = launcher_hint(environment)->tasks; tasks > 1)
    throw EnvironmentError(fmt::format(
        "srun started {} tasks without PMIx: each of them would see a world of one rank. Remedy: "
        "srun --mpi=pmix (see srun --mpi=list), or mpirun inside the allocation. Nothing was "
        "measured and no file was written.",
        tasks));
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) unsetenv(name);
}

int measure(Command command, const std::vector<std::string>& arguments, char** argv) {
  if (wants_help(arguments)) return help(help_text(command));
  const LoadedConfig loaded = load_config(command, static_cast<int>(arguments.size()), argv + 2);
  const auto hint = launcher_hint(process_environment());
  // Ranks of a launch leave together: there the engine reads it.
  if (loaded.config.preflight && !hint) read_preflight_record(*loaded.config.preflight);
  if (command == Command::scale && !hint)
    return static_cast<int>(supervise_scale(loaded, arguments));
  if (loaded.config.dry_run) return show_plan(command, loaded.config, hint ? hint->tasks : 1);
  leave_srun_without_pmi();
  become_engine(loaded.config, argv);
}

int list(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help("Usage: scalemark list [models|configs]\n");
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (arguments.size() > 1 || (!what.empty() && what != "models" && what != "configs"))
    throw ConfigError(fmt::format("scalemark list: {} is no list{}; legal: models, configs",
                                  quote(arguments.back()),
                                  did_you_mean(arguments.back(), {"models", "configs"})));
  if (what != "configs") std::fputs(models_table().c_str(), stdout);
  if (what.empty()) std::fputs("\n", stdout);
  if (what != "models") std::fputs(configs_table(shipped_configs(own_path())).c_str(), stdout);
  return 0;
}

/// Commands that launch others are not ranks of a launch.
void refuse_ranks(const std::string& why) {
  if (launcher_hint(process_environment()))
    throw ConfigError(why +
                      ": start it once, not by mpirun or srun (in a batch script of Slurm call it "
                      "as it is)");
}

int sweep(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help(sweep_help());
  refuse_ranks("scalemark sweep launches its ranks itself");
  return static_cast<int>(run_sweep(read_sweep_request(arguments)));
}

int instances(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help(instances_help(arguments));
  refuse_ranks("scalemark instances starts its processes itself");
  return static_cast<int>(run_instances(read_instances_request(arguments)));
}

int compare(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help(compare_help());
  return static_cast<int>(run_compare(read_compare_request(arguments)));
}

int gate(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help(gate_help());
  refuse_ranks("scalemark gate launches its ranks itself");
  return static_cast<int>(run_gate(read_gate_request(arguments)));
}

int project_curve(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) return help(project_help());
  return static_cast<int>(run_project(read_project_request(arguments)));
}

[[noreturn]] void refuse_subcommand(const std::string& name) {
  if (std::find(kLater.begin(), kLater.end(), name) != kLater.end())
    throw ConfigError(fmt::format("scalemark {} is not available in this version", name));
  throw ConfigError(fmt::format("unknown subcommand {}{} (legal: {}; see scalemark --help)",
                                quote(name), did_you_mean(name, kCommands), join(kCommands, ", ")));
}

int dispatch(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(kOverview, stderr);
    return static_cast<int>(ExitCode::usage);
  }
  const std::string name = argv[1];
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  if (name == "--help" || name == "-h" || name == "help") return help(kOverview);
  if (name == "--version") return help(version_text());
  if (name == "run") return measure(Command::run, arguments, argv);
  if (name == "scale") return measure(Command::scale, arguments, argv);
  if (name == "infer") return measure(Command::infer, arguments, argv);
  if (name == "preflight") return measure(Command::preflight, arguments, argv);
  if (name == "sweep") return sweep(arguments);
  if (name == "instances") return instances(arguments);
  if (name == "compare") return compare(arguments);
  if (name == "gate") return gate(arguments);
  if (name == "project") return project_curve(arguments);
  if (name == "list") return list(arguments);
  refuse_subcommand(name);
}

}  // namespace

int front_door(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {
    if (speaks()) std::fprintf(stderr, "scalemark: %s\n", error.what());
    return static_cast<int>(exit_code_of(error));
  }
}

}  // namespace scalemark
