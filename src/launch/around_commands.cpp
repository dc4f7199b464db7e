// See around_commands.hpp.
#include "launch/around_commands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launch/launch.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

void make_descriptor(int number, const char* path, int flags) {
  const int file = open(path, flags | O_CLOEXEC, 0666);
  if (file < 0 || dup2(file, number) < 0)
    throw ResultError(fmt::format("{}: {}", path, std::strerror(errno)));
}

/// In the child: its output is appended to `log` below the command's own words.
void prepare_child(const CommandWords& command, Moment moment, const std::filesystem::path& log) {
  make_descriptor(STDIN_FILENO, "/dev/null", O_RDONLY);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO})
    make_descriptor(number, log.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  show(fmt::format("$ {}\n", shell_quoted(command)));
  if (moment == Moment::after) signal(SIGUSR1, SIG_IGN);  // the supervisor's request to stop
}

std::string how_it_failed(const SupervisedExits& exits, double limit_seconds) {
  const int status = exits.raw_status.front();
  if (exits.overdue) return fmt::format("took longer than {:g} s (command_timeout)", limit_seconds);
  if (exits.stopped_by_us) return "was stopped from outside";
  if (status == 127) return "cannot be started (status 127)";
  return (is_signal_status(status) ? "was " : "") + end_words(status);
}

/// What one command came to.
CommandsEnd run_one(const CommandWords& command, Moment moment, double limit_seconds,
                    const std::filesystem::path& log) {
  ChildProcess process{command};
  process.before_exec = [&] { prepare_child(command, moment, log); };
  Supervision how;
  how.limit_seconds = limit_seconds;
  if (moment == Moment::after) how.grace_seconds = limit_seconds;
  const SupervisedExits exits = supervise_all({process}, how);
  CommandsEnd end;
  end.stopped = exits.stopped_by_us;
  if (exits.raw_status.front() == 0 && !exits.overdue) return end;
  end.code = exits.overdue ? ExitCode::timeout : ExitCode::environment;
  end.reason = fmt::format("{}: {} {}; see {}", to_string(moment), shell_quoted(command),
                           how_it_failed(exits, limit_seconds), log.string());
  return end;
}

}  // namespace

std::string to_string(Moment moment) { return moment == Moment::before ? "before" : "after"; }

CommandsEnd run_commands(const std::vector<CommandWords>& commands, Moment moment,
                         double limit_seconds, const std::filesystem::path& log) {
  std::error_code ignored;
  std::filesystem::remove(log, ignored);  // of an earlier attempt
  CommandsEnd all;
  for (const CommandWords& command : commands) {
    const CommandsEnd end = run_one(command, moment, limit_seconds, log);
    all.stopped = all.stopped || end.stopped;
    if (all.code == ExitCode::ok && end.code != ExitCode::ok) {
      all.code = end.code;
      all.reason = end.reason;
    }
    if (moment == Moment::before && (all.stopped || all.code != ExitCode::ok)) break;
  }
  return all;
}

}  // namespace scalemark
