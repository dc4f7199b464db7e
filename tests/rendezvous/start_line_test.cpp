// The start line with real processes: nobody begins before all are ready, and each side sees the
// end of the other.
#include "rendezvous/start_line.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark::start_line_test {
namespace {

using Environment = std::map<std::string, std::string>;
constexpr const char* kVariable = "SMK_INTERNAL_START_LINE";

Environment handed_over() { return {{kVariable, std::getenv(kVariable)}}; }

/// A process that has line `line` and ends with the status of `body`.
pid_t start(const Starter& starter, std::size_t line, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  starter.hand_over(line);
  _exit(body());
}

/// Its exit status; -1 for a signal.
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool never() { return false; }

/// Waits at the line, then says when.
int measured() {
  StartLine line(handed_over());
  line.wait(never);
  const double now = steady_seconds();
  line.report({now, now + 0.5});
  return 0;
}

/// Updates until `done`; false after ten seconds.
bool updates_until(Starter& starter, const std::function<bool()>& done) {
  for (int i = 0; i < 1000; ++i) {
    starter.update();
    if (done()) return true;
    usleep(10'000);
  }
  return false;
}

TEST(StartLine, NobodyBeginsBeforeAllAreReady) {
  Starter starter(2);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t first = start(starter, 0, measured);
  const pid_t second = start(starter, 1, [&] {
    char byte = 0;  // its warm-up takes until it is told
    return read(go[0], &byte, 1) == 1 ? measured() : 1;
  });
  EXPECT_TRUE(updates_until(starter, [&] { return starter.is_ready(0); }));
  usleep(50'000);
  starter.update();
  EXPECT_FALSE(starter.has_started());
  EXPECT_FALSE(starter.window(0));
  const double before = steady_seconds();
  EXPECT_EQ(write(go[1], "x", 1), 1);
  EXPECT_TRUE(updates_until(starter, [&] { return starter.window(0) && starter.window(1); }));
  EXPECT_TRUE(starter.has_started());
  for (const std::size_t line : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_GE(starter.window(line)->start, before);
    EXPECT_NEAR(starter.window(line)->end - starter.window(line)->start, 0.5, 1e-6);
  }
  EXPECT_EQ(end_of(first), 0);
  EXPECT_EQ(end_of(second), 0);
  for (const int end : go) close(end);
}

TEST(StartLine, TheEndOfTheSupervisorEndsTheWait) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    StartLine line(Environment{{kVariable, std::to_string(ends[1])}});
    try {
      line.wait(never);
    } catch (const RunError&) {
      _exit(4);
    }
    _exit(0);
  }
  close(ends[1]);
  char ready = 0;
  EXPECT_EQ(read(ends[0], &ready, 1), 1);
  close(ends[0]);
  EXPECT_EQ(end_of(child), 4);
}

TEST(StartLine, TheEndOfAProcessClosesItsInput) {
  Starter starter(2);
  const pid_t child = start(starter, 0, [] { return 3; });
  EXPECT_EQ(starter.inputs().size(), 2u);
  EXPECT_EQ(end_of(child), 3);
  EXPECT_TRUE(updates_until(starter, [&] { return starter.inputs().empty(); }));
  EXPECT_FALSE(starter.has_started());
}

TEST(StartLine, AWaitMayBeLeft) {
  Starter starter(2);
  const pid_t child = start(starter, 0, [] {
    int asked = 0;
    StartLine line(handed_over());
    line.wait([&] { return ++asked > 2; });
    return asked;
  });
  EXPECT_TRUE(updates_until(starter, [&] { return starter.is_ready(0); }));
  EXPECT_EQ(end_of(child), 3);
}

TEST(StartLine, WithoutASupervisorNothingIsWaitedFor) {
  StartLine line(Environment{});
  line.wait(never);
  line.report({0, 1});
  for (const char* wrong : {"", "x", "-1", "999999"})
    EXPECT_THROW(StartLine(Environment{{kVariable, wrong}}), EnvironmentError) << wrong;
}

}  // namespace
}  // namespace scalemark::start_line_test
