// See streams.hpp.
#include "streams.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "colour.hpp"
#include "file_size_limit.hpp"

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

void put(std::string_view text) {
  std::fflush(stdout);  // what a library has printed comes first
  if (const int error = write_whole(STDOUT_FILENO, in_colour(text, STDOUT_FILENO)); error != 0)
    throw StdoutError((error == EBADF ? "it is closed" : write_error_words(error)) +
                      ": what was asked for there is lost");
}

void show(std::string_view text) noexcept {
  std::fflush(stdout);
  write_whole(STDOUT_FILENO, text);
}

}  // namespace scalemark
