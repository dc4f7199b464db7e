// Prints what programs of ours say, each kind to its stream.
#include "streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "error.hpp"

namespace scalemark {

void prepare_streams() {
  // A descriptor that is opened takes the lowest free number. What is read-only refuses what is
  // written, so that data which nobody gets is noticed; nobody is to hear of lost messages.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0) [[maybe_unused]]
      const int opened = open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  for (const int of_a_write : {SIGPIPE, SIGXFSZ}) std::signal(of_a_write, SIG_IGN);
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    setenv("COLUMNS", std::to_string(size.ws_col).c_str(), /*replace=*/0);
}

std::optional<std::size_t> output_columns() {
  const char* text = std::getenv("COLUMNS");
  const long columns = text ? std::strtol(text, nullptr, 10) : 0;
  if (columns <= 0) return std::nullopt;
  return static_cast<std::size_t>(std::max(columns, 40L));
}

int write_whole(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (written < 0 && errno != EINTR) {
      return errno;
    } else if (written == 0) {
      return ENOSPC;
    } else if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  return 0;
}

struct Aside::Impl {
  std::size_t most_waiting = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool busy = false, ends = false;
  std::thread thread;

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait_until_done(changed, lock, [&] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
      lock.unlock();
      task();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

Aside::Aside(std::size_t most_waiting) : impl_(std::make_unique<Impl>()) {
  impl_->most_waiting = most_waiting;
  sigset_t all, before;  // signals are for the threads that wait for them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    impl_->thread = std::thread([impl = impl_.get()] { impl->work(); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Aside::~Aside() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->changed.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
}

bool Aside::add(std::function<void()> task) noexcept {
  try {
    if (!impl_->thread.joinable()) return task(), true;
    const std::lock_guard lock(impl_->mutex);
    if (impl_->tasks.size() >= impl_->most_waiting) return false;
    impl_->tasks.push_back(std::move(task));
    impl_->changed.notify_all();
    return true;
  } catch (...) {
    return false;
  }
}

bool Aside::finish(std::optional<double> seconds) noexcept {
  std::unique_lock lock(impl_->mutex);
  const auto done = [&] { return impl_->tasks.empty() && !impl_->busy; };
  if (seconds) return impl_->changed.wait_for(lock, std::chrono::duration<double>(*seconds), done);
  wait_until_done(impl_->changed, lock, done);
  return true;
}

namespace {

constexpr std::size_t kMostLines = 4096;  // that wait for their reader

std::atomic<Aside*> printer = nullptr;  // never destroyed: others print until the process ends
std::atomic<std::size_t> dropped = 0;

void tell_of_dropped() {
  const std::size_t lines = dropped.exchange(0);
  if (lines == 0) return;
  const std::string text =
      fmt::format("{} not printed, since nobody read what came before", counted(lines, "line"));
  if (uses_event_lines())
    write_event("warning", {{"text", text}});
  else
    write_whole(STDERR_FILENO, "warning: " + text + "\n");
}

void put(int descriptor, std::string text) noexcept {
  const auto write = [descriptor, text = std::move(text)] {
    std::fflush(stdout);  // what a library has printed comes first
    write_whole(descriptor, text);
  };
  Aside* const aside = printer;
  if (aside == nullptr) return write();
  const auto print = [write] {
    write();
    tell_of_dropped();
  };
  try {
    if (!aside->add(print)) ++dropped;
  } catch (...) {  // no memory
    ++dropped;
  }
}

}  // namespace

void print_aside() {
  if (printer == nullptr) printer = new Aside(kMostLines);
}

void finish_printing(std::optional<double> seconds) noexcept {
  if (Aside* const aside = printer) aside->finish(seconds);
}

namespace {

int data_descriptor = STDOUT_FILENO;
bool kept_has_colours = false;  // of stdout, where keep_stdout_for_data() has moved it

/// As it is to leave this process.
std::string marked(std::string_view text) {
  if (std::getenv(kMarksData) == nullptr || data_descriptor == STDOUT_FILENO)
    return std::string(text);
  std::string lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.append(kDataMark).append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

}  // namespace

void keep_stdout_for_data() {
  std::fflush(stdout);
  const int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0) return;
  kept_has_colours = has_colours(STDOUT_FILENO);
  data_descriptor = kept;
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

DataLines::Parts DataLines::pass(std::string_view bytes) {
  Parts parts;
  for (const char c : bytes) {
    line_ += c;
    if (c != '\n') continue;
    Parts last = rest();
    parts.data += last.data;
    parts.others += last.others;
  }
  return parts;
}

DataLines::Parts DataLines::rest() {
  const std::string line = std::exchange(line_, {});
  const std::size_t mark = line.find(kDataMark);
  if (mark == line.npos) return {"", line};
  return {line.substr(mark + kDataMark.size()), ""};
}

void print_data(std::string_view text) {
  finish_printing();
  std::fflush(stdout);  // what a library has printed comes first
  const bool colours =
      data_descriptor == STDOUT_FILENO ? has_colours(STDOUT_FILENO) : kept_has_colours;
  const int error =
      write_whole(data_descriptor, marked(colours ? coloured(text) : std::string(text)));
  if (error != 0)
    throw StdoutError((error == EBADF ? "it is closed" : write_error_words(error)) +
                      ": what was asked for there is lost");
}

void print_view(std::string_view text) noexcept { put(data_descriptor, marked(text)); }

namespace {

constexpr std::string_view kWarning = "warning: ";
std::atomic<bool> quiet = false;

void print_line(std::string_view prefix, std::string_view text) {
  if (uses_event_lines()) {
    const bool warning = text.starts_with(kWarning);
    if (warning) text.remove_prefix(kWarning.size());
    return write_event(warning ? "warning" : "message", {{"text", text}});
  }
  const std::string line = in_colour(std::string(prefix) + std::string(text), STDERR_FILENO) + "\n";
  put(STDERR_FILENO, line);
}

}  // namespace

void say_progress(std::string_view line) {
  if (!quiet || line.starts_with(kWarning)) print_line("", line);
}
void say_info(std::string_view what) {
  if (!quiet) print_line("scalemark: ", what);
}
void warn(std::string_view what) { print_line("", std::string(kWarning).append(what)); }
void say_error(std::string_view what) { print_line("scalemark: ", what); }

void be_quiet() { quiet = true; }
bool is_quiet() { return quiet; }

std::string four_digits(double value, double like) {
  if (value == 0 || like == 0 || !std::isfinite(like)) return fmt::format("{}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(like))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - exponent, 0, 9));
}

std::string four_digits(double value) { return four_digits(value, value); }

std::string counted(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

namespace {
std::atomic<bool> used = false;
}  // namespace

void use_event_lines() { used = true; }
bool uses_event_lines() { return used; }

void write_event(std::string_view event, const Json& fields) noexcept {
  try {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    Json line = {{"event", event}, {"time", now.count()}};
    line.update(fields);
    put(STDERR_FILENO, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (...) {  // no memory: what was to be said is lost, and nothing else
  }
}

namespace {

constexpr const char* kLent = "SMK_INTERNAL_COLOURS";  // "1", "2" or "12": descriptors

constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kGreen = "\x1b[32m",
                           kPlain = "\x1b[0m";

struct Beginning {
  std::string_view words, colour;
};
constexpr std::array kBeginnings{
    Beginning{"warning:", kYellow},     Beginning{"warn:", kYellow},
    Beginning{"fail:", kRed},           Beginning{"dip:", kYellow},
    Beginning{"verdict: fail", kRed},   Beginning{"verdict: warn", kYellow},
    Beginning{"verdict: pass", kGreen}, Beginning{"regressed", kRed},
    Beginning{"inconclusive", kYellow}, Beginning{"pass:", kGreen},
    Beginning{"too noisy:", kYellow}};

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

/// Of a launcher, which gives rank 0 a terminal of its own whatever becomes of what it writes.
bool is_rank() {
  return is_set("OMPI_COMM_WORLD_RANK") || is_set("PMIX_RANK") || is_set("PMI_RANK");
}

std::string coloured_line(std::string_view line) {
  for (const auto& [words, colour] : kBeginnings)
    if (line.starts_with(words))
      return std::string(colour) + std::string(words) + std::string(kPlain) +
             std::string(line.substr(words.size()));
  return std::string(line);
}

}  // namespace

bool has_colours(int descriptor) {
  const char* terminal = std::getenv("TERM");
  if (is_set("NO_COLOR") || !terminal || std::string_view(terminal) == "dumb") return false;
  if (const char* lent = std::getenv(kLent))
    return std::string_view(lent).find(static_cast<char>('0' + descriptor)) !=
           std::string_view::npos;
  return !is_rank() && isatty(descriptor) != 0;
}

void lend_colours() {
  std::string lent;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (has_colours(descriptor)) lent += static_cast<char>('0' + descriptor);
  setenv(kLent, lent.c_str(), 1);
}

std::string in_colour(std::string_view text, int descriptor) {
  return has_colours(descriptor) ? coloured(text) : std::string(text);
}

std::string coloured(std::string_view text) {
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    all += coloured_line(text.substr(begin, end - begin));
    if (end < text.size()) all += '\n';
    begin = end + 1;
  }
  return all;
}

namespace {

/// Open MPI 4: 4 MiB and a page each for btl_vader_segment_size and for what PMIx stores.
constexpr rlim_t kSharedBytes = 5 << 20;

rlim_t limit() {
  rlimit found{};
  return getrlimit(RLIMIT_FSIZE, &found) == 0 ? found.rlim_cur : RLIM_INFINITY;
}

std::string kib(rlim_t bytes) { return fmt::format("{} KiB", static_cast<double>(bytes) / 1024); }

std::string limit_words() { return "the file size limit (ulimit -f) is " + kib(limit()); }

}  // namespace

std::string write_error_words(int error) {
  if (error != EFBIG || limit() == RLIM_INFINITY) return std::strerror(error);
  return fmt::format("{}, since {}: raise it", std::strerror(error), limit_words());
}

void refuse_too_small_for_ranks() {
  if (limit() >= kSharedBytes) return;
  throw ResultError(fmt::format("{}, and ranks, which share memory in files, need {}: raise it",
                                limit_words(), kib(kSharedBytes)));
}

}  // namespace scalemark
