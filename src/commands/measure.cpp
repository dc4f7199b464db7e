// The subcommands of the engine: run, scale, infer and preflight. Their flags are the keys of the
// configuration.
#include <fmt/format.h>

#include <cstdlib>

#include "analysis/run_plan.hpp"
#include "commands/cpu_masks.hpp"
#include "commands/scale_from.hpp"
#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/curves.hpp"
#include "config/load.hpp"
#include "event_lines.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch_builder.hpp"
#include "launch/rank_job.hpp"
#include "platform/platform.hpp"
#include "report/run_plan_table.hpp"
#include "result/preflight_reference.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

std::string plan_text(const ResolvedConfig& config, const std::vector<std::int64_t>& ranks,
                      bool keeps_weights) {
  const std::vector<CurvePlan> plans = plan_curves(config, ranks, keeps_weights);
  return config.json ? record_text(plans_json(plans)) : run_plan_table(plans);
}

/// Of ranks that a launcher has started already: one of them speaks.
ExitCode show_plan(Command command, const ResolvedConfig& config, int tasks) {
  const bool curve = command == Command::scale;
  const auto ranks = !curve                 ? std::vector<std::int64_t>{tasks}
                     : config.ranks.empty() ? default_ranks(tasks, config.ranks_per_node)
                                            : config.ranks;
  if (curve) check_points(config, ranks);
  const std::string text = plan_text(config, ranks, curve);
  if (speaks()) put(text);
  return ExitCode::ok;
}

/// Outside a launcher it starts its ranks itself.
ExitCode start_ranks(const LoadedConfig& loaded, const std::vector<std::string>& arguments) {
  const ResolvedConfig& config = loaded.config;
  const RankJob job = rank_job(loaded, arguments);
  if (!config.dry_run) return supervise_ranks(loaded, job);
  put(plan_text(config, job.points.ranks, loaded.command == Command::scale));
  note("would start: " + command_line(job.request));
  return ExitCode::ok;
}

/// Open MPI would end the process within MPI_Init. One task needs nobody and runs alone: it is
/// often a shell of `srun --pty`, which Open MPI recognises by the step's number. False for a rank
/// that leaves, too, but whose host need not say why again.
bool leave_srun_without_pmi() {
  const auto environment = process_environment();
  if (!is_srun_without_pmi(environment)) return true;
  if (const auto tasks = launcher_hint(environment)->tasks; tasks > 1) {
    if (!speaks()) return false;
    throw EnvironmentError(fmt::format(
        "srun started {} tasks without PMIx: each of them would see a world of one rank. Remedy: "
        "srun --mpi=pmix (see srun --mpi=list), or mpirun inside the allocation. Nothing was "
        "measured and no file was written.",
        tasks));
  }
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) unsetenv(name);
  return true;
}

ExitCode measure(Command command, const CommandLine& line) {
  const LoadedConfig loaded = load_config(command, line.arguments, environment_lines());
  if (loaded.config.progress == ProgressKind::jsonl) use_event_lines();
  if (loaded.config.quiet) be_quiet();
  if (loaded.config.cpu_masks) return judge_cpu_masks(loaded);
  if (loaded.config.from) return scale_from(loaded);
  if (loaded.config.repeat_unit == RepeatUnit::launch) return scale_by_launches(loaded);
  const auto hint = launcher_hint(process_environment());
  // Ranks of a launch leave together: there the engine reads it.
  if (loaded.config.preflight && !hint) read_preflight_record(*loaded.config.preflight);
  const bool starts_ranks = command == Command::scale || !loaded.config.ranks.empty();
  if (hint || !starts_ranks) refuse_outside_container(loaded.config, hint.has_value());
  if (starts_ranks && !hint) return start_ranks(loaded, line.arguments);
  if (loaded.config.dry_run) return show_plan(command, loaded.config, hint ? hint->tasks : 1);
  if (!leave_srun_without_pmi()) return ExitCode::environment;
  become_engine(loaded, line.argv);
}

}  // namespace

ExitCode commands::run(const CommandLine& line) { return measure(Command::run, line); }
ExitCode commands::scale(const CommandLine& line) { return measure(Command::scale, line); }
ExitCode commands::infer(const CommandLine& line) { return measure(Command::infer, line); }
ExitCode commands::preflight(const CommandLine& line) { return measure(Command::preflight, line); }

CommandHelp commands::run_help(const CommandLine&) { return key_help(Command::run); }
CommandHelp commands::scale_help(const CommandLine&) { return key_help(Command::scale); }
CommandHelp commands::infer_help(const CommandLine&) { return key_help(Command::infer); }
CommandHelp commands::preflight_help(const CommandLine&) { return key_help(Command::preflight); }

}  // namespace scalemark
