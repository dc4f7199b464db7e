// Starts MPI, makes the session, runs its command, and agrees on the exit code.
#include "session/engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "comm/abort.hpp"
#include "config/keys.hpp"
#include "platform/platform.hpp"
#include "result/handover.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "streams.hpp"
#include "train/arithmetic.hpp"
#include "train/checkpoint.hpp"
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

std::atomic<bool> has_returned = false;

/// A library that gives up calls exit(1), which is no code of ours: libgomp where it gets no
/// threads.
extern "C" void name_foreign_exit(int status, void*) {
  if (has_returned || status != 1) return;
  say_error(
      "a library has ended this process with status 1; its own message is above. Where it got no "
      "threads, raise the limit of processes (ulimit -u, or pids.max of the control group), or "
      "lower --num_intra_threads");
  finish_printing(1);
  _exit(static_cast<int>(ExitCode::environment));
}

/// Implements `scalemark join`, whose words the front door has read: the folder, the file, a step
/// or nothing, and --quiet or nothing. No rank and no record takes part.
int join_checkpoint(const std::vector<std::string>& words) {
  if (!words[3].empty()) be_quiet();
  try {
    std::optional<std::int64_t> step;
    if (!words[2].empty()) step = std::stoll(words[2]);
    const WholeCheckpoint whole = read_sharded_checkpoint(words[0], step);
    for (const std::string& why : whole.passed_over) warn("passed over: " + why);
    const std::int64_t bytes = write_whole_checkpoint(whole, words[1]);
    say_info(fmt::format("step {}, of {} rank{} with --shard {}: {} parameters, {:.1f} MB: {}",
                         whole.training.steps, whole.ranks, whole.ranks == 1 ? "" : "s",
                         whole.shard, whole.weights.size(), static_cast<double>(bytes) / 1e6,
                         words[1]));
    return static_cast<int>(ExitCode::ok);
  } catch (const std::exception& error) {
    say_error(words_of(error));
    return static_cast<int>(exit_code_of(error));
  }
}

int run_engine(int argc, char** argv) {
  if (argc == 6 && argv[1] == std::string_view("join"))
    return join_checkpoint({argv + 2, argv + argc});
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
  keep_stdout_for_data();  // libraries and models print what they like
  const auto& injection = loaded.config.inject;
  if (injection && injection->kind == "exit_before_init" && injection->rank == rank_before_mpi())
    std::_Exit(0);

  flush_denormals(loaded.config.flush_denormals);  // must come before there are other threads
  install_stop_signals();
  Handover handover(process_environment(), rank_before_mpi() == 0);
  try {
    Watchdog watchdog(loaded.config.timeout);
    const bool alone = rank_before_mpi() == 0 && !handover.is_heard();
    watchdog.set_beat([&handover, alone, said = false]() mutable {
      handover.beat();
      if (!stop_requested()) return;
      handover.publish_stop_heard();
      if (alone && !std::exchange(said, true))
        say_info("stopping after this step; a second Ctrl-C ends it at once");
    });
    StartBarrier start_barrier(process_environment());  // before MPI starts processes of its own
    tell_failed_start_by(say_error_before_mpi);
    RankGroup world = RankGroup::world(watchdog);
    handover.publish_listens();
    print_aside();
    const ExitCode code = run_in_world(std::move(loaded), world, start_barrier, handover);
    watchdog.enter("finalize");
    RankGroup::finalize(world);
    finish_printing();
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    say_error_before_mpi(exit_code_of(error), words_of(error));
    finish_printing();
    return static_cast<int>(exit_code_of(error));
  }
}

/// Returns whether a tool may be in this process that writes what it has found when main() returns.
bool has_listening_tool() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  return is_set("LD_PRELOAD") || is_set("CUDA_INJECTION64_PATH");
#endif
}

}  // namespace

int engine_main(int argc, char** argv) {
  on_exit(name_foreign_exit, nullptr);
  const int code = run_engine(argc, argv);
  has_returned = true;
  if (has_listening_tool()) return code;
  // Everything of ours has ended. LibTorch would now take each of its operators out of its tables,
  // which is a quarter of the CPU time of a short run.
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace scalemark
