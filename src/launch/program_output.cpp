// Starts a program and reads its output, with an optional deadline.
#include "launch/program_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string_view>

#include "error.hpp"

extern char** environ;

namespace scalemark {
namespace {

using DeadlineClock = std::chrono::steady_clock;
constexpr auto kNever = DeadlineClock::time_point::max();

/// The descriptors of a pipe, which no other child inherits.
class OutputPipe {
 public:
  OutputPipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw EnvironmentError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  ~OutputPipe() {
    close_writer();
    close(ends_[0]);
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Says which streams and which process group the program gets.
class SpawnWords {
 public:
  SpawnWords(const ProgramRequest& request, int writer) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, writer, STDOUT_FILENO);
    if (request.errors == ErrorStream::with_output)
      posix_spawn_file_actions_adddup2(&actions_, writer, STDERR_FILENO);
    if (request.errors == ErrorStream::dropped)
      posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // The program hears the signals that this process blocks or ignores.
    sigset_t none, broken_pipe;
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &broken_pipe);
    const int group = request.deadline_seconds ? POSIX_SPAWN_SETPGROUP : 0;
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  }
  ~SpawnWords() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnWords(const SpawnWords&) = delete;
  SpawnWords& operator=(const SpawnWords&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns the variables of this process, in which those of the request replace others of the same
/// name.
std::vector<std::string> variables_of(const ProgramRequest& request) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view variable(*entry);
    const auto name = variable.substr(0, variable.find('='));
    if (std::ranges::none_of(request.environment,
                             [&](const auto& set) { return set.first == name; }))
      all.emplace_back(variable);
  }
  for (const auto& [name, value] : request.environment) all.push_back(name + "=" + value);
  return all;
}

/// A running program, until it has been waited for.
class RunningProgram {
 public:
  RunningProgram(pid_t child, std::optional<double> seconds) : child_(child) {
    if (seconds)
      deadline_ = DeadlineClock::now() + std::chrono::duration_cast<DeadlineClock::duration>(
                                             std::chrono::duration<double>(*seconds));
  }

  /// Reads all that the program prints. At the deadline it is killed.
  void read_all(int reader, ProgramOutput& output) {
    std::array<char, 4096> chunk;
    while (true) {
      pollfd input{reader, POLLIN, 0};
      const int ready = poll(&input, 1, milliseconds_left());
      if (ready == 0) return kill_all(output);
      if (ready < 0 && errno == EINTR) continue;
      const ssize_t got = ready < 0 ? -1 : read(reader, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      output.text.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  /// Waits for the end of the program, which may go on after it has closed its stdout.
  void wait(ProgramOutput& output) {
    int status = 0;
    while (deadline_ != kNever && !output.overdue) {
      const pid_t ended = waitpid(child_, &status, WNOHANG);
      if (ended == child_) return note(status, output);
      if (ended < 0 && errno != EINTR) break;
      if (milliseconds_left() == 0) kill_all(output);
      poll(nullptr, 0, 5);
    }
    pid_t ended = 0;
    do ended = waitpid(child_, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended == child_) return note(status, output);
    output.status = 127;  // the parent had SIGCHLD ignored: nobody learns the status
  }

 private:
  /// Returns the time that is left, for poll(): -1 without a deadline, 0 when it is over.
  int milliseconds_left() const {
    if (deadline_ == kNever) return -1;
    const double left =
        std::chrono::duration<double, std::milli>(deadline_ - DeadlineClock::now()).count();
    return static_cast<int>(std::clamp(std::ceil(left), 0., 1e9));
  }
  void kill_all(ProgramOutput& output) const {
    kill(-child_, SIGKILL);
    output.overdue = true;
  }
  static void note(int status, ProgramOutput& output) {
    output.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  pid_t child_;
  DeadlineClock::time_point deadline_ = kNever;
};

}  // namespace

ProgramOutput output_of(const ProgramRequest& request) {
  OutputPipe pipe;
  const SpawnWords words(request, pipe.writer());
  const auto variables = variables_of(request);
  pid_t child = 0;
  ProgramOutput output;
  if (posix_spawnp(&child, request.command.at(0).c_str(), words.actions(), words.attributes(),
                   pointers_to(request.command).data(), pointers_to(variables).data()) != 0) {
    output.status = 127;
    return output;
  }
  pipe.close_writer();
  RunningProgram program(child, request.deadline_seconds);
  program.read_all(pipe.reader(), output);
  program.wait(output);
  return output;
}

std::filesystem::path found_in_path(const std::string& name, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string program = folder + "/" + name; access(program.c_str(), X_OK) == 0)
      return program;
  return {};
}

}  // namespace scalemark
