// The watchdog in a process of its own without MPI: exit code, message, last words. (With MPI:
// faults_test.)
#include "comm/watchdog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "comm/abort.hpp"

namespace scalemark::watchdog_test {
namespace {

class WatchdogDeath : public ::testing::Test {
 protected:
  // A fresh process for every death test: threads do not survive a fork.
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

void hang(const char* phase) {
  Watchdog watchdog(0.3);
  watchdog.enter(phase, 12);
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

TEST_F(WatchdogDeath, ExpiresWithCode5NamingPhaseAndStep) {
  EXPECT_EXIT(hang("forward"), ::testing::ExitedWithCode(5),
              "timeout: .* in phase 'forward' \\(last step: 12\\)(.|\n)*--timeout");
}

TEST_F(WatchdogDeath, LeavesEvenWhenTheAbortHangs) {
  EXPECT_EXIT(
      {
        Watchdog watchdog(0.2);
        watchdog.set_abort([](int) { std::this_thread::sleep_for(std::chrono::seconds(60)); });
        std::this_thread::sleep_for(std::chrono::seconds(60));
      },
      ::testing::ExitedWithCode(5), "timeout");
}

TEST_F(WatchdogDeath, CallsTheAbortHandlerOnce) {
  EXPECT_EXIT(
      {
        Watchdog watchdog(60);
        const AbortHandler last([](int code, const std::string& message) {
          const std::string words = "last words: " + message + " " + std::to_string(code) + "\n";
          if (write(STDERR_FILENO, words.data(), words.size()) < 0) _exit(99);
        });
        abort_job(4, "the disk is gone");
      },
      ::testing::ExitedWithCode(4), "scalemark: the disk is gone\nlast words: the disk is gone 4");
}

TEST_F(WatchdogDeath, AnAbortHandlerThatHangsDoesNotStopTheAbort) {
  EXPECT_EXIT(
      {
        Watchdog watchdog(60);
        const AbortHandler last(
            [](int, const std::string&) { std::this_thread::sleep_for(std::chrono::seconds(60)); });
        abort_job(4, "the disk is gone");
      },
      ::testing::ExitedWithCode(4), "the disk is gone");
}

TEST(Watchdog, APhaseThatChangesStaysAlive) {
  Watchdog watchdog(0.5);
  for (int i = 0; i < 12; ++i) {
    watchdog.enter("step", i);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
  EXPECT_STREQ(watchdog.progress().phase, "step");
  EXPECT_EQ(watchdog.progress().step, 11);
}

TEST(Watchdog, AScopeReturnsToThePhaseBefore) {
  Watchdog watchdog(60);
  watchdog.enter("step", 3);
  {
    const PhaseScope scope(watchdog, "allreduce");
    EXPECT_STREQ(watchdog.progress().phase, "allreduce");
  }
  EXPECT_STREQ(watchdog.progress().phase, "step");
  EXPECT_EQ(watchdog.progress().step, 3);
}

TEST(Watchdog, ALongerTimeoutCountsAtOnce) {
  Watchdog watchdog(0.4);
  watchdog.set_timeout(1e12);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_GT(watchdog.timeout(), 1e6);
}

}  // namespace
}  // namespace scalemark::watchdog_test
