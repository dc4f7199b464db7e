// The start line with real processes: nobody begins before all are ready, and each side sees the
// end of the other.
#include "rendezvous/start_barrier.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "error.hpp"
#include "measure/clock.hpp"
#include "support/test_folder.hpp"

namespace scalemark::start_barrier_test {
namespace {

using Environment = std::map<std::string, std::string>;

/// A process that ends with the status of `body`.
pid_t start(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  _exit(body());
}

/// Where a rank of a job finds its line; a port is tried on this host alone.
Environment line_of(const Starter& starter, std::size_t job) {
  auto [name, address] = starter.variable(job);
  if (const std::size_t at = address.find('@'); at != address.npos)
    address = address.substr(0, at + 1) + "127.0.0.1" + address.substr(address.rfind(':'));
  return {{name, address}};
}

/// Its exit status; -1 for a signal.
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool never() { return false; }

/// Waits at the line, then says when.
int measured(const Environment& environment) {
  StartBarrier line(environment);
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

/// Lines of this machine, and of ranks on other hosts.
class StartBarriers : public testing::TestWithParam<bool> {
 protected:
  Starter starter_of(const std::vector<int>& ranks) const {
    return Starter(folder_.path(), ranks, GetParam());
  }
  TestFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Here, StartBarriers, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(ByPorts, StartBarriers, testing::Values(true));

TEST_P(StartBarriers, NobodyBeginsBeforeAllAreReady) {
  Starter starter = starter_of({2, 1});
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank)
    children.push_back(start([&] { return measured(line_of(starter, 0)); }));
  children.push_back(start([&] {
    char byte = 0;  // its warm-up takes until it is told
    return read(go[0], &byte, 1) == 1 ? measured(line_of(starter, 1)) : 1;
  }));
  EXPECT_TRUE(updates_until(starter, [&] { return starter.is_ready(0); }));
  usleep(50'000);
  starter.update();
  EXPECT_FALSE(starter.has_started());
  EXPECT_FALSE(starter.window(0));
  const double before = steady_seconds();
  EXPECT_EQ(write(go[1], "x", 1), 1);
  EXPECT_TRUE(updates_until(starter, [&] { return starter.window(0) && starter.window(1); }));
  EXPECT_TRUE(starter.has_started());
  for (const std::size_t job : {std::size_t{0}, std::size_t{1}}) {
    const double kNoise = GetParam() ? 0.02 : 0;  // of the estimate of another host's clock
    EXPECT_GE(starter.window(job)->start, before - kNoise);
    EXPECT_GE(starter.window(job)->end - starter.window(job)->start, 0.5 - 1e-6);
  }
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  for (const int end : go) close(end);
}

TEST_P(StartBarriers, TheEndOfTheSupervisorEndsTheWait) {
  auto starter = std::make_unique<Starter>(folder_.path(), std::vector{1, 1}, GetParam());
  const pid_t child = start([&] {
    StartBarrier line(line_of(*starter, 0));
    try {
      line.wait(never);
    } catch (const RunError&) {
      return 4;
    }
    return 0;
  });
  EXPECT_TRUE(updates_until(*starter, [&] { return starter->is_ready(0); }));
  starter.reset();
  EXPECT_EQ(end_of(child), 4);
}

TEST_P(StartBarriers, TheEndOfAProcessClosesItsInput) {
  Starter starter = starter_of({1, 1});
  const std::size_t listening = starter.inputs().size();
  const pid_t child = start([&] {
    StartBarrier line(line_of(starter, 0));
    return 3;
  });
  EXPECT_TRUE(updates_until(starter, [&] {
    return starter.inputs().size() > listening || waitpid(child, nullptr, WNOHANG) == child;
  }));
  EXPECT_TRUE(updates_until(starter, [&] { return starter.inputs().size() == listening; }));
  EXPECT_FALSE(starter.has_started());
}

TEST_P(StartBarriers, AWaitMayBeLeft) {
  Starter starter = starter_of({1, 1});
  const pid_t child = start([&] {
    int asked = 0;
    StartBarrier line(line_of(starter, 0));
    line.wait([&] { return ++asked > 2; });
    return asked;
  });
  EXPECT_TRUE(updates_until(starter, [&] { return starter.is_ready(0); }));
  EXPECT_EQ(end_of(child), 3);
}

TEST(StartBarrier, WhoDoesNotKnowTheTokenIsNotHeard) {
  Starter starter({}, {1}, true);
  Environment wrong = line_of(starter, 0);
  std::string& address = wrong.begin()->second;
  address[6] = address[6] == '0' ? '1' : '0';
  const pid_t child = start([&] {
    try {
      StartBarrier line(wrong);
    } catch (const EnvironmentError&) {
      return 7;
    }
    return 0;
  });
  int status = 0;
  EXPECT_TRUE(updates_until(starter, [&] { return waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(starter.is_ready(0));
}

TEST(StartBarrier, WithoutASupervisorNothingIsWaitedFor) {
  StartBarrier line(Environment{});
  line.wait(never);
  line.report({0, 1});
  for (const char* wrong : {"", "x", "/nowhere"})
    EXPECT_THROW(StartBarrier(Environment{{"SMK_INTERNAL_START_BARRIER", wrong}}), EnvironmentError)
        << wrong;
}

}  // namespace
}  // namespace scalemark::start_barrier_test
