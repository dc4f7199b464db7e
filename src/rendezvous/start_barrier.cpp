// Starts measurements at the same moment and collects when they ran.
#include "rendezvous/start_barrier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kScheme = "tcp://";
constexpr int kCallMilliseconds = 5000;  // limit for one of several addresses

EnvironmentError unreachable(const std::string& address, const std::string& why) {
  return EnvironmentError(fmt::format(
      "{}: {}: whoever starts measurements together cannot be heard there", address, why));
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw EnvironmentError(fmt::format(
        "{}: too long for the address of a socket; set TMPDIR to a shorter path", path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// The type of bind() and connect().
using Attach = int (*)(int, const sockaddr*, socklen_t);

int open_unix(const std::string& path, int flags, Attach attach) {
  const sockaddr_un address = unix_address(path);
  int opened = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (opened < 0 ||
      attach(opened, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const EnvironmentError error = unreachable(path, std::strerror(errno));
    close_line(opened);
    throw error;
  }
  return opened;
}

bool is_ready_for(int socket, short event) {
  pollfd watched{socket, event, 0};
  return poll(&watched, 1, kCallMilliseconds) == 1 && (watched.revents & event) != 0;
}

/// Sends the token and checks the answer, since addresses of private networks exist more than once.
/// Returns -1 where it is wrong.
int call(const addrinfo& to, const std::string& token) {
  int line = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (line < 0) return -1;
  const bool begun = connect(line, to.ai_addr, to.ai_addrlen) == 0 || errno == EINPROGRESS;
  const int at_once = 1;
  setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  char heard = 0;
  if (!begun || !is_ready_for(line, POLLOUT) || !send_on(line, token.data(), token.size()) ||
      !is_ready_for(line, POLLIN) || recv(line, &heard, 1, 0) != 1 || heard != kHere)
    close_line(line);
  return line;
}

int connect_port(const std::string& address) {
  const std::string_view rest = std::string_view(address).substr(kScheme.size());
  const std::size_t at = rest.find('@'), colon = rest.rfind(':');
  if (at == rest.npos || colon == rest.npos || colon < at)
    throw unreachable(address, "no address of a port");
  const std::string token(rest.substr(0, at)), port(rest.substr(colon + 1));
  std::istringstream hosts{std::string(rest.substr(at + 1, colon - at - 1))};
  for (std::string host; std::getline(hosts, host, ',');) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    if (const int line = call(*found, token); line >= 0) return line;
  }
  throw EnvironmentError(fmt::format(
      "no connection to {} on port {}, where the start of all instances is given: let the hosts "
      "reach each other's unprivileged ports, or measure them with slots on one host",
      rest.substr(at + 1, colon - at - 1), port));
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw EnvironmentError(fmt::format("no random bytes: {}", std::strerror(errno)));
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// Returns the addresses of all interfaces that are up, except loopback and link-local addresses.
std::string own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::string list;
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    if (std::strchr(text.data(), '%')) continue;
    list += (list.empty() ? "" : ",") + std::string(text.data());
  }
  return list;
}

}  // namespace

int connect_barrier(const std::string& address) {
  return address.starts_with(kScheme) ? connect_port(address) : open_unix(address, 0, connect);
}

BarrierListener::BarrierListener(const std::filesystem::path& path)
    : address_(path.string()), socket_(open_unix(address_, SOCK_NONBLOCK, bind)) {
  if (listen(socket_, SOMAXCONN) != 0) throw unreachable(address_, std::strerror(errno));
}

BarrierListener::BarrierListener() : token_(random_token()) {
  socket_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool six = socket_ >= 0;
  if (!six) socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int both = 0;
  if (six) setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
  sockaddr_in6 any{};  // zeros are any address and any port, of either family
  any.sin6_family = six ? AF_INET6 : AF_INET;
  socklen_t size = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* place = reinterpret_cast<sockaddr*>(&any);
  if (socket_ < 0 || bind(socket_, place, size) != 0 || listen(socket_, SOMAXCONN) != 0 ||
      getsockname(socket_, place, &size) != 0)
    throw unreachable("a port of this host", std::strerror(errno));
  address_ = fmt::format("{}{}@{}:{}", kScheme, token_, own_addresses(), ntohs(any.sin6_port));
}

BarrierListener::~BarrierListener() { close_line(socket_); }

BarrierListener::BarrierListener(BarrierListener&& other) noexcept
    : address_(std::move(other.address_)),
      token_(std::move(other.token_)),
      socket_(std::exchange(other.socket_, -1)) {}

int BarrierListener::accept() const {
  const int line = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  const int at_once = 1;
  if (line >= 0 && !token_.empty())
    setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  return line;
}

namespace {

constexpr const char* kVariable = "SMK_INTERNAL_START_BARRIER";
constexpr int kAskMilliseconds = 100;

/// The window that a rank reports, in seconds of its host's clock.
struct ToldWindow {
  Window window;
  double go_heard, said;
};

}  // namespace

StartBarrier::StartBarrier(const std::map<std::string, std::string>& environment) {
  const auto interleaver = environment.find("SMK_INTERNAL_TURNS");
  interleaved_ = interleaver != environment.end();
  const auto address = interleaved_ ? interleaver : environment.find(kVariable);
  if (address != environment.end()) line_ = connect_barrier(address->second);
}

StartBarrier::~StartBarrier() { close_line(line_); }

std::optional<int> StartBarrier::starter() const {
  ucred made_by{};
  socklen_t size = sizeof made_by;
  if (line_ < 0 || getsockopt(line_, SOL_SOCKET, SO_PEERCRED, &made_by, &size) != 0 ||
      made_by.pid <= 0)
    return std::nullopt;
  return made_by.pid;
}

void StartBarrier::wait(const std::function<bool()>& leaves) { await_go(kReady, leaves); }

void StartBarrier::end(const std::function<bool()>& leaves) {
  if (interleaved_) await_go(kEnded, leaves);
}

void StartBarrier::await_go(char word, const std::function<bool()>& leaves) {
  if (line_ < 0) return;
  const auto lost = [] {
    return RunError("whoever started this measurement together with others is gone");
  };
  if (!send_on(line_, &word, 1)) throw lost();
  while (!leaves()) {
    pollfd watched{line_, POLLIN, 0};
    if (poll(&watched, 1, kAskMilliseconds) <= 0) continue;  // a signal also ends the wait
    char heard = 0;
    const ssize_t got = recv(line_, &heard, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got != 1 || heard != kGo) throw lost();
    go_heard_ = steady_seconds();
    return;
  }
}

void StartBarrier::report(const Window& window) {
  if (line_ < 0 || interleaved_) return;
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
        {hosts_apart ? BarrierListener() : BarrierListener(folder / fmt::format("start-{}", i)),
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

Interleaver::Interleaver(const std::filesystem::path& folder, const std::array<int, 2>& ranks) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].ranks = static_cast<std::size_t>(ranks[i]);
    jobs_[i].listener = std::make_unique<BarrierListener>(folder / fmt::format("slices-{}", i));
  }
}

Interleaver::~Interleaver() {
  for (Job& job : jobs_) job.close_lines();
}

std::vector<int> Interleaver::inputs() const {
  std::vector<int> open;
  for (const Job& job : jobs_) {
    open.push_back(job.listener->descriptor());
    for (const Line& line : job.lines)
      if (line.socket >= 0) open.push_back(line.socket);
  }
  return open;
}

void Interleaver::update() {
  for (Job& job : jobs_) {
    job.accept_ranks();
    job.hear();
  }
  if (!std::ranges::all_of(jobs_, &Job::waits))
    return;  // not all are ready yet, or one is measuring
  if (std::ranges::all_of(jobs_, &Job::has_ended)) {
    for (Job& job : jobs_) job.go();
    return;
  }
  Job& next = jobs_[next_job()];
  ++next.slices;
  next.go();
}

std::size_t Interleaver::next_job() {
  const std::size_t place = turn_++ % 4;
  const std::size_t job = place == 0 || place == 3 ? 0 : 1;
  return jobs_[job].has_ended() ? 1 - job : job;
}

bool Interleaver::Job::waits() const {
  return lines.size() == ranks &&
         std::ranges::none_of(lines, [](const Line& line) { return line.word == 0; });
}

bool Interleaver::Job::has_ended() const {
  return lines.size() == ranks &&
         std::ranges::all_of(lines, [](const Line& line) { return line.word == kEnded; });
}

void Interleaver::Job::accept_ranks() {
  for (int made; (made = listener->accept()) >= 0;) lines.push_back({made, 0});
}

void Interleaver::Job::hear() {
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

void Interleaver::Job::go() {
  for (Line& line : lines) {
    if (line.socket < 0) continue;
    line.word = 0;
    send_on(line.socket, &kGo, 1);
  }
}

void Interleaver::Job::close_lines() {
  for (Line& line : lines) close_line(line.socket);
}

}  // namespace scalemark
