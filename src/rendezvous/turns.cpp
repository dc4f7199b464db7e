// See turns.hpp.
#include "rendezvous/turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "rendezvous/start_line.hpp"

namespace scalemark {

TurnGiver::TurnGiver(const std::filesystem::path& folder, const std::array<int, 2>& ranks) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].ranks = static_cast<std::size_t>(ranks[i]);
    jobs_[i].listener = std::make_unique<LineListener>(folder / fmt::format("turns-{}", i));
  }
}

TurnGiver::~TurnGiver() {
  for (Job& job : jobs_) job.close_lines();
}

std::vector<int> TurnGiver::inputs() const {
  std::vector<int> open;
  for (const Job& job : jobs_) {
    open.push_back(job.listener->descriptor());
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
  for (int made; (made = listener->accept()) >= 0;) lines.push_back({made, 0});
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
