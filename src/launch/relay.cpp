// See relay.hpp.
#include "launch/relay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "error.hpp"
#include "launch/boilerplate.hpp"
#include "streams.hpp"

namespace scalemark {

Relay::Relay() {
  // Signals are for the thread that supervises.
  sigset_t all, before;
  sigfillset(&all);
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      const int error = errno;
      finish();
      throw EnvironmentError(fmt::format("cannot make a pipe: {}", std::strerror(error)));
    }
    pipes_[i].read_end = ends[0];
    pipes_[i].write_end = ends[1];
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pipes_[i].thread =
        std::thread(pass_on, std::ref(pipes_[i]), i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

Relay::~Relay() { finish(); }

void Relay::finish() {
  for (Pipe& pipe : pipes_) {
    if (pipe.write_end >= 0) close(pipe.write_end);
    if (pipe.thread.joinable()) pipe.thread.join();
    if (pipe.read_end >= 0) close(pipe.read_end);
    pipe.read_end = pipe.write_end = -1;
  }
}

void Relay::pass_on(Pipe& pipe, int destination) {
  std::array<char, 65536> buffer;
  Boilerplate boilerplate;  // on stderr alone: stdout is data
  const bool filtered = destination == STDERR_FILENO;
  const auto write = [&](std::string_view bytes) {
    // What follows a loss is no data any more.
    if (!pipe.lost && write_whole(destination, bytes) != 0) pipe.lost = true;
  };
  for (;;) {
    const ssize_t got = read(pipe.read_end, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    write(filtered ? boilerplate.pass(bytes) : bytes);
  }
  if (filtered) write(boilerplate.rest());
}

}  // namespace scalemark
