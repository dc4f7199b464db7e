// Which ranks and steps an injected fault hits.
#include "train/injection.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "error.hpp"

namespace scalemark::injection_test {
namespace {

TEST(InjectedFault, NanLossHitsItsRankFromItsStepOn) {
  const Injection injection{"nan_loss", 1, 3, 0};
  const InjectedFault hit(injection, 1), other(injection, 0);
  EXPECT_FALSE(hit.nan_loss(2));
  EXPECT_TRUE(hit.nan_loss(3));
  EXPECT_TRUE(hit.nan_loss(4));
  EXPECT_FALSE(other.nan_loss(3));
  EXPECT_FALSE(InjectedFault().nan_loss(3));
}

TEST(InjectedFault, MinusOneMeansEveryRank) {
  EXPECT_TRUE(InjectedFault(Injection{"nan_loss", -1, 0, 0}, 5).nan_loss(0));
}

TEST(InjectedFault, KillsTheProcessAtItsStep) {
  const pid_t child = fork();
  if (child == 0) {
    const InjectedFault fault(Injection{"kill", 0, 2, 0}, 0);
    fault.before_step(1);
    fault.before_step(2);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(InjectedFault, OfADeviceIsRefusedOnTheCpu) {
  const InjectedFault fault(Injection{"device_fault", 0, 2, 0}, 0);
  EXPECT_NO_THROW(fault.before_step(1));
  EXPECT_THROW(fault.before_step(2), ConfigError);
}

TEST(InjectedFault, BusyUsesCpuTimeFromItsStepOn) {
  const auto cpu_milliseconds_of = [](long step) {
    const std::clock_t before = std::clock();
    InjectedFault(Injection{"busy", -1, 1, 50}, 0).before_step(step);
    return 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  EXPECT_LT(cpu_milliseconds_of(0), 40);
  EXPECT_GE(cpu_milliseconds_of(1), 49);
  EXPECT_GE(cpu_milliseconds_of(2), 49);
}

}  // namespace
}  // namespace scalemark::injection_test
