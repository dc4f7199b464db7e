// See start_line.hpp. After the words of line_socket.hpp a Window may come, at the end.
#include "rendezvous/start_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "config/numbers.hpp"
#include "error.hpp"
#include "rendezvous/line_socket.hpp"
#include "rendezvous/turns.hpp"

namespace scalemark {
namespace {

constexpr const char* kVariable = "SMK_INTERNAL_START_LINE";
constexpr int kAskMilliseconds = 100;

}  // namespace

StartLine::StartLine(const std::map<std::string, std::string>& environment) {
  if (const auto turns = environment.find("SMK_INTERNAL_TURNS"); turns != environment.end()) {
    line_ = connect_to_turns(turns->second);
    takes_turns_ = true;
    return;
  }
  const auto found = environment.find(kVariable);
  if (found == environment.end()) return;
  const auto line = parse_integer(found->second);
  if (!line || *line < 0 || fcntl(static_cast<int>(*line), F_SETFD, FD_CLOEXEC) != 0)
    throw EnvironmentError(fmt::format(
        "{}={} names no open descriptor: unset it, scalemark instances sets it for its processes",
        kVariable, found->second));
  line_ = static_cast<int>(*line);
}

StartLine::~StartLine() { close_line(line_); }

std::optional<int> StartLine::starter() const {
  ucred made_by{};
  socklen_t size = sizeof made_by;
  if (line_ < 0 || getsockopt(line_, SOL_SOCKET, SO_PEERCRED, &made_by, &size) != 0)
    return std::nullopt;
  return made_by.pid;
}

void StartLine::wait(const std::function<bool()>& leaves) { await_go(kReady, leaves); }

void StartLine::end(const std::function<bool()>& leaves) {
  if (takes_turns_) await_go(kEnded, leaves);
}

void StartLine::await_go(char word, const std::function<bool()>& leaves) {
  if (line_ < 0) return;
  const auto lost = [] {
    return RunError("whoever started this measurement together with others is gone");
  };
  if (!send_on(line_, &word, 1)) throw lost();
  while (!leaves()) {
    pollfd watched{line_, POLLIN, 0};
    if (poll(&watched, 1, kAskMilliseconds) <= 0) continue;  // also a signal
    char heard = 0;
    const ssize_t got = recv(line_, &heard, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got != 1 || heard != kGo) throw lost();
    return;
  }
}

void StartLine::report(const Window& window) {
  if (line_ >= 0 && !takes_turns_) send_on(line_, &window, sizeof window);
}

Starter::Starter(std::size_t lines) : lines_(lines) {
  for (Line& line : lines_) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      const int error = errno;
      for (Line& made : lines_) {
        close_line(made.ours);
        close_line(made.theirs);
      }
      throw EnvironmentError(
          fmt::format("cannot make a pair of sockets for {} processes: {}; raise ulimit -n", lines,
                      std::strerror(error)));
    }
    line.ours = ends[0];
    line.theirs = ends[1];
  }
}

Starter::~Starter() {
  for (Line& line : lines_) {
    close_line(line.ours);
    close_line(line.theirs);
  }
}

void Starter::hand_over(std::size_t line) const {
  fcntl(lines_[line].theirs, F_SETFD, 0);  // survives exec
  setenv(kVariable, std::to_string(lines_[line].theirs).c_str(), 1);
}

std::vector<int> Starter::inputs() const {
  std::vector<int> open;
  for (const Line& line : lines_)
    if (line.ours >= 0) open.push_back(line.ours);
  return open;
}

void Starter::hear(Line& line) {
  std::array<char, sizeof(Window)> message{};
  while (line.ours >= 0) {
    const ssize_t got = recv(line.ours, message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == 1 && message[0] == kReady) {
      line.ready = true;
    } else if (got == sizeof(Window)) {
      Window window;
      std::memcpy(&window, message.data(), sizeof window);
      line.window = window;
    } else {
      close_line(line.ours);
    }
  }
}

void Starter::update() {
  for (Line& line : lines_) {
    close_line(line.theirs);  // of the processes alone from now on, so that their end is seen
    hear(line);
  }
  if (started_ || !std::ranges::all_of(lines_, &Line::ready)) return;
  started_ = true;
  for (const Line& line : lines_)
    if (line.ours >= 0) send_on(line.ours, &kGo, 1);
}

}  // namespace scalemark
