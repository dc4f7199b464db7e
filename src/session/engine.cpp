// Starts MPI, makes the session, runs its command, and agrees on the exit code.
#include "session/engine.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "comm/abort.hpp"
#include "config/keys.hpp"
#include "platform/platform.hpp"
#include "result/early_error.hpp"
#include "session/commands.hpp"
#include "session/error_words.hpp"
#include "session/measured_run.hpp"
#include "streams.hpp"
#include "train/arithmetic.hpp"
#include "train/trainer.hpp"

namespace scalemark {
namespace {

std::optional<Command> command_of(std::string_view name) {
  for (const Command command : {Command::run, Command::scale, Command::infer, Command::preflight})
    if (name == name_of(command)) return command;
  return std::nullopt;
}

ExitCode run(Session& session) {
  switch (session.loaded.command) {
    case Command::run:
      return run_command(session);
    case Command::scale:
      return scale_command(session);
    case Command::infer:
      return infer_command(session);
    case Command::preflight:
      break;
  }
  return preflight_command(session);
}

/// Runs the command from MPI_Init to the agreed code. An error that one rank has alone ends the
/// whole job at once, because its peers wait for it.
ExitCode run_in_world(LoadedConfig loaded, RankGroup& world, StartBarrier& start_barrier,
                      Handover& handover) {
  std::unique_ptr<Session> session;
  ExitCode code = ExitCode::ok;
  try {
    session = std::make_unique<Session>(std::move(loaded), world);
    session->start_barrier = &start_barrier;
    code = run(*session);
  } catch (const AgreedError& error) {
    if (world.rank() == 0) say_error(error.what());
    code = error.code();
  } catch (const std::exception& error) {
    const std::string words = session ? measuring_words(error, *session) : words_of(error);
    if (world.size() > 1)
      abort_job(static_cast<int>(exit_code_of(error)),
                fmt::format("rank {}: {}", world.rank(), words));
    say_error(words);
    code = exit_code_of(error);
  }
  if (world.rank() == 0 && uses_event_lines())
    write_event("end", {{"exit_code", static_cast<int>(code)}});
  // Without a session there is no record yet. Where one is due, the supervisor makes it.
  if (session || !leaves_a_record(code)) handover.publish_exit_code(code);
  return code;
}

}  // namespace

int engine_main(int argc, char** argv) {
  const auto command = command_of(argc > 1 ? argv[1] : "");
  if (!command) {
    say_error(
        "the engine knows the commands run, scale, infer and preflight; start it through "
        "./scalemark");
    return static_cast<int>(ExitCode::usage);
  }
  LoadedConfig loaded;
  try {
    // The front door has read the configuration. Whoever starts the engine directly has not.
    if (auto handed = handed_config(*command))
      loaded = std::move(*handed);
    else
      loaded = load_config(*command, std::vector<std::string>(argv + 2, argv + argc),
                           environment_lines());
  } catch (const std::exception& error) {
    say_error_before_mpi(exit_code_of(error), error.what());
    return static_cast<int>(exit_code_of(error));
  }
  if (loaded.config.progress == ProgressKind::jsonl) use_event_lines();
  if (loaded.config.quiet) be_quiet();
  if (loaded.config.json) keep_stdout_for_data();
  const auto& injection = loaded.config.inject;
  if (injection && injection->kind == "exit_before_init" && injection->rank == rank_before_mpi())
    std::_Exit(0);

  flush_denormals(loaded.config.flush_denormals);  // must come before there are other threads
  install_stop_signals();
  Handover handover(process_environment(), rank_before_mpi() == 0);
  Watchdog watchdog(loaded.config.timeout);
  watchdog.set_beat([&handover] {
    handover.beat();
    if (stop_requested()) handover.publish_stop_heard();
  });
  try {
    StartBarrier start_barrier(process_environment());  // before MPI starts processes of its own
    RankGroup world = RankGroup::world(watchdog);
    handover.publish_listens();
    const ExitCode code = run_in_world(std::move(loaded), world, start_barrier, handover);
    watchdog.enter("finalize");
    RankGroup::finalize(world);
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    say_error_before_mpi(exit_code_of(error), error.what());
    return static_cast<int>(exit_code_of(error));
  }
}

}  // namespace scalemark
