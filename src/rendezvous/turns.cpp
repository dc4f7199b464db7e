// See turns.hpp.
#include "rendezvous/turns.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "error.hpp"
#include "rendezvous/line_socket.hpp"

namespace scalemark {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw EnvironmentError(fmt::format(
        "{}: too long for the address of a socket; set TMPDIR to a shorter path", path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

EnvironmentError failure(const std::string& path) {
  return EnvironmentError(
      fmt::format("cannot take turns at {}: {}; scalemark gate --alternate launches does without",
                  path, std::strerror(errno)));
}

/// bind() or connect().
using Attach = int (*)(int, const sockaddr*, socklen_t);

int open_socket(const std::string& path, int flags, Attach attach) {
  const sockaddr_un address = address_of(path);
  int opened = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (opened < 0 ||
      attach(opened, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const EnvironmentError error = failure(path);
    close_line(opened);
    throw error;
  }
  return opened;
}

}  // namespace

int connect_to_turns(const std::string& path) { return open_socket(path, 0, connect); }

TurnGiver::TurnGiver(const std::filesystem::path& folder, const std::array<int, 2>& ranks) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].path = (folder / fmt::format("turns-{}", i)).string();
    jobs_[i].ranks = static_cast<std::size_t>(ranks[i]);
    jobs_[i].listener = open_socket(jobs_[i].path, SOCK_NONBLOCK, bind);
    if (listen(jobs_[i].listener, ranks[i]) != 0) throw failure(jobs_[i].path);
  }
}

TurnGiver::~TurnGiver() {
  for (Job& job : jobs_) {
    job.close_lines();
    close_line(job.listener);
  }
}

std::vector<int> TurnGiver::inputs() const {
  std::vector<int> open;
  for (const Job& job : jobs_) {
    open.push_back(job.listener);
    for (const Line& line : job.lines)
      if (line.socket >= 0) open.push_back(line.socket);
  }
  return open;
}

void TurnGiver::update() {
  for (Job& job : jobs_) {
    job.accept_ranks();
    job.hear();
  }
  if (!std::ranges::all_of(jobs_, &Job::waits)) return;  // not all there yet, or one has its turn
  if (std::ranges::all_of(jobs_, &Job::has_ended)) {
    for (Job& job : jobs_) job.go();
    return;
  }
  Job& next = jobs_[next_job()];
  ++next.turns;
  next.go();
}

std::size_t TurnGiver::next_job() {
  const std::size_t place = turn_++ % 4;
  const std::size_t job = place == 0 || place == 3 ? 0 : 1;
  return jobs_[job].has_ended() ? 1 - job : job;
}

bool TurnGiver::Job::waits() const {
  return lines.size() == ranks &&
         std::ranges::none_of(lines, [](const Line& line) { return line.word == 0; });
}

bool TurnGiver::Job::has_ended() const {
  return lines.size() == ranks &&
         std::ranges::all_of(lines, [](const Line& line) { return line.word == kEnded; });
}

void TurnGiver::Job::accept_ranks() {
  for (int made; (made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
    lines.push_back({made, 0});
}

void TurnGiver::Job::hear() {
  for (Line& line : lines) {
    char word = 0;
    while (line.socket >= 0) {
      const ssize_t got = recv(line.socket, &word, 1, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      line.word = got == 1 ? word : kEnded;
      if (got != 1) close_line(line.socket);
    }
  }
}

void TurnGiver::Job::go() {
  for (Line& line : lines) {
    if (line.socket < 0) continue;
    line.word = 0;
    send_on(line.socket, &kGo, 1);
  }
}

void TurnGiver::Job::close_lines() {
  for (Line& line : lines) close_line(line.socket);
}

}  // namespace scalemark
