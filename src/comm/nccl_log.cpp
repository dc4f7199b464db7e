// Captures NCCL's log through a pipe and reads the transports from it.
#include "comm/nccl_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

namespace scalemark {
namespace {

bool is_number(const std::string& word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Turns "NET/IB/0/GDRDMA" into "NET/IB/GDRDMA".
std::string without_numbers(const std::string& name) {
  std::istringstream parts(name);
  std::string kept;
  for (std::string part; std::getline(parts, part, '/');)
    if (!is_number(part)) kept += (kept.empty() ? "" : "/") + part;
  return kept;
}

std::string environment_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Returns whether the log names the channels, which it does at INFO and above. NCCL accepts its
/// levels in any case.
bool tells_channels(std::string level) {
  std::ranges::transform(level, level.begin(), [](unsigned char c) { return std::toupper(c); });
  return level == "INFO" || level == "TRACE";
}

/// Replaces %h and %p as in NCCL_DEBUG_FILE.
std::string expanded(std::string path) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const auto replace = [&](const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = path.find(what, at)) != path.npos; at += with.size())
      path.replace(at, what.size(), with);
  };
  replace("%h", host.data());
  replace("%p", std::to_string(getpid()));
  return path;
}

void append(int file, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, data, size);
    if (written <= 0) return;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

}  // namespace

/// Copies what NCCL writes into a pipe to a file, and the lines that the user asked for to stderr.
class NcclLog::Tee {
 public:
  Tee(int file, bool warnings_alone) : file_(file), warnings_alone_(warnings_alone) {
    if (pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    fcntl(ends_[1], F_SETFL, 0);  // NCCL's end must block
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Tee() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
    for (const int end : ends_) close(end);
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", ends_[1]); }

 private:
  void run(const std::stop_token& stop) {
    bool last = false;
    while (!last) {
      last = stop.stop_requested();  // after a stop the pipe is emptied once more
      pollfd wait{ends_[0], POLLIN, 0};
      poll(&wait, 1, last ? 0 : 50);
      std::array<char, 4096> block{};
      ssize_t size = 0;
      while ((size = ::read(ends_[0], block.data(), block.size())) > 0) {
        append(file_, block.data(), static_cast<std::size_t>(size));
        pass_on(std::string_view(block.data(), static_cast<std::size_t>(size)));
      }
    }
  }
  void pass_on(std::string_view text) {
    rest_ += text;
    for (std::size_t end = 0; (end = rest_.find('\n')) != rest_.npos; rest_.erase(0, end + 1))
      if (!warnings_alone_ || rest_.substr(0, end).find(" NCCL INFO ") == rest_.npos)
        append(STDERR_FILENO, rest_.data(), end + 1);
  }

  int file_;
  bool warnings_alone_;
  std::array<int, 2> ends_{-1, -1};
  std::string rest_;  ///< the incomplete line at the end
  std::jthread thread_;
};

NcclLog::NcclLog() {
  const std::string level = environment_of("NCCL_DEBUG");
  if (const std::string path = environment_of("NCCL_DEBUG_FILE"); !path.empty()) {
    if (tells_channels(level)) users_file_ = expanded(path);
    return;
  }
  file_ = memfd_create("nccl-log", MFD_CLOEXEC);
  if (file_ < 0) return;
  std::string path = fmt::format("/proc/self/fd/{}", file_);
  if (!level.empty()) {
    tee_ = std::make_unique<Tee>(file_, !tells_channels(level));
    path = tee_->path();
  }
  if (!tells_channels(level)) {
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT", level.empty() ? 0 : 1);
  }
  setenv("NCCL_DEBUG_FILE", path.c_str(), 1);
}

NcclLog::~NcclLog() {
  tee_.reset();
  if (file_ >= 0) close(file_);
}

std::string NcclLog::text(std::size_t from) const {
  const int opened = users_file_.empty() ? -1 : open(users_file_.c_str(), O_RDONLY | O_CLOEXEC);
  const int file = opened >= 0 ? opened : file_;
  std::string text;
  std::array<char, 4096> block{};
  while (file >= 0) {
    const ssize_t size = pread(file, block.data(), block.size(), static_cast<off_t>(from));
    if (size <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(size));
    from += static_cast<std::size_t>(size);
  }
  if (opened >= 0) close(opened);
  return text;
}

std::string nccl_transport(std::string_view log) {
  std::set<std::string> names;
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t via = line.find(" via ");
    if (via == line.npos || line.find("Channel") > via) continue;
    std::istringstream words(line.substr(via + 5));
    if (std::string name; words >> name) names.insert(without_numbers(name));
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

}  // namespace scalemark
