// See start_line.hpp.
#include "rendezvous/start_line.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "error.hpp"
#include "rendezvous/line_socket.hpp"

namespace scalemark {
namespace {

constexpr const char* kVariable = "SMK_INTERNAL_START_LINE";
constexpr int kAskMilliseconds = 100;

/// What a rank says of its window, in seconds of its host's clock.
struct ToldWindow {
  Window window;
  double go_heard, said;
};

}  // namespace

StartLine::StartLine(const std::map<std::string, std::string>& environment) {
  const auto turns = environment.find("SMK_INTERNAL_TURNS");
  takes_turns_ = turns != environment.end();
  const auto address = takes_turns_ ? turns : environment.find(kVariable);
  if (address != environment.end()) line_ = connect_line(address->second);
}

StartLine::~StartLine() { close_line(line_); }

std::optional<int> StartLine::starter() const {
  ucred made_by{};
  socklen_t size = sizeof made_by;
  if (line_ < 0 || getsockopt(line_, SOL_SOCKET, SO_PEERCRED, &made_by, &size) != 0 ||
      made_by.pid <= 0)
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
    go_heard_ = steady_seconds();
    return;
  }
}

void StartLine::report(const Window& window) {
  if (line_ < 0 || takes_turns_) return;
  const ToldWindow told{window, go_heard_, steady_seconds()};
  std::array<char, 1 + sizeof told> message{kWindow};
  std::memcpy(message.data() + 1, &told, sizeof told);
  send_on(line_, message.data(), message.size());
}

Starter::Starter(const std::filesystem::path& folder, const std::vector<int>& ranks,
                 bool hosts_apart)
    : hosts_apart_(hosts_apart) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    jobs_.push_back(
        {hosts_apart ? LineListener() : LineListener(folder / fmt::format("start-{}", i)),
         static_cast<std::size_t>(ranks[i])});
}

Starter::~Starter() {
  for (Job& job : jobs_)
    for (Line& line : job.lines) close_line(line.socket);
}

std::pair<std::string, std::string> Starter::variable(std::size_t job) const {
  return {kVariable, jobs_[job].listener.address()};
}

std::vector<int> Starter::inputs() const {
  std::vector<int> open;
  for (const Job& job : jobs_) {
    open.push_back(job.listener.descriptor());
    for (const Line& line : job.lines)
      if (line.socket >= 0) open.push_back(line.socket);
  }
  return open;
}

bool Starter::is_ready(std::size_t job) const {
  const auto ready = std::ranges::count_if(jobs_[job].lines, &Line::ready);
  return static_cast<std::size_t>(ready) == jobs_[job].ranks;
}

std::optional<Window> Starter::window(std::size_t job) const {
  std::optional<Window> all;
  std::size_t told = 0;
  for (const Line& line : jobs_[job].lines) {
    if (!line.window) continue;
    if (told++ == 0) all = line.window;
    all = {std::min(all->start, line.window->start), std::max(all->end, line.window->end)};
  }
  return told == jobs_[job].ranks ? all : std::nullopt;
}

bool Starter::understand(const std::string& token, Line& line) const {
  if (!line.known) {
    if (line.heard.size() < token.size()) return token.starts_with(line.heard);
    if (!line.heard.starts_with(token)) return false;
    line.heard.erase(0, token.size());
    line.known = token.empty() || send_on(line.socket, &kHere, 1);
  }
  for (; !line.heard.empty() && line.heard.front() == kReady; line.heard.erase(0, 1))
    line.ready = true;
  if (line.heard.empty()) return true;
  ToldWindow told;
  if (line.heard.front() != kWindow || line.heard.size() > 1 + sizeof told) return false;
  if (line.heard.size() <= sizeof told) return true;
  std::memcpy(&told, line.heard.data() + 1, sizeof told);
  line.heard.clear();
  const double offset =
      hosts_apart_ ? (go_said_ - told.go_heard + steady_seconds() - told.said) / 2 : 0;
  line.window = {told.window.start + offset, told.window.end + offset};
  return true;
}

void Starter::hear(const std::string& token, Line& line) const {
  std::array<char, 256> message{};
  while (line.socket >= 0) {
    const ssize_t got = recv(line.socket, message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) line.heard.append(message.data(), static_cast<std::size_t>(got));
    if (got <= 0 || !understand(token, line)) close_line(line.socket);
  }
}

void Starter::update() {
  bool all = true;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    for (int made; (made = job.listener.accept()) >= 0;) job.lines.push_back({made});
    for (Line& line : job.lines) hear(job.listener.token(), line);
    all = all && is_ready(i);
  }
  if (started_ || !all) return;
  started_ = true;
  go_said_ = steady_seconds();
  for (const Job& job : jobs_)
    for (const Line& line : job.lines)
      if (line.socket >= 0) send_on(line.socket, &kGo, 1);
}

}  // namespace scalemark
