// Processes of a made /proc, and of this one.
#include "platform/processes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "measure/clock.hpp"
#include "platform/tree.hpp"

namespace scalemark::processes_test {
namespace {

/// user and system time, and those of ended children, in ticks.
std::string stat(int pid, int parent, const std::string& times) {
  return std::to_string(pid) + " (a (b) c) S " + std::to_string(parent) + " 1 1 0 -1 0 0 0 0 0 " +
         times + " 20 0 1 0 5 0 0\n";
}

TEST(ProcessStat, NamesMayHoldParenthesesAndBlanks) {
  const auto process = process_stat(stat(12, 7, "100 20 3 4"), 100);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 12);
  EXPECT_EQ(process->parent, 7);
  EXPECT_EQ(process->state, 'S');
  EXPECT_DOUBLE_EQ(process->cpu_seconds, 1.27);
  EXPECT_FALSE(process_stat("", 100));
  EXPECT_FALSE(process_stat("12 (name) S 7 1", 100));
}

TEST(Processes, OfAFamilyAreAllBelowItsAncestor) {
  test::Tree tree;
  const auto ticks = static_cast<int>(sysconf(_SC_CLK_TCK));
  const auto seconds = [&](int count) { return std::to_string(count * ticks) + " 0 0 0"; };
  tree.file("proc/2/stat", stat(2, 1, seconds(1)))
      .file("proc/3/stat", stat(3, 2, seconds(10)))
      .file("proc/4/stat", stat(4, 3, seconds(100)))
      .file("proc/5/stat", stat(5, 1, seconds(1000)))
      .file("proc/6/stat", "gone")
      .file("proc/stat", "cpu 1\n");
  const auto all = processes(tree.root());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(family_cpu_seconds(all, 2, 4), 111);
  EXPECT_EQ(family_cpu_seconds(all, 3, 4), 110);
  EXPECT_FALSE(family_cpu_seconds(all, 2, 5));   // a stranger
  EXPECT_FALSE(family_cpu_seconds(all, 77, 4));  // nobody
}

TEST(Processes, AChildOfThisOneBelongsToItAliveAndEnded) {
  const auto family = [] { return family_cpu_seconds(processes(), getpid(), getpid()).value(); };
  const double before = family();
  const pid_t child = fork();
  if (child == 0) {
    const double begin = steady_seconds();
    while (steady_seconds() - begin < 60) {
    }
    _exit(0);
  }
  while (family() < before + 0.2) usleep(10'000);
  kill(child, SIGKILL);
  EXPECT_GE(family(), before + 0.2);  // a zombie
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GE(family(), before + 0.2);
}

}  // namespace
}  // namespace scalemark::processes_test
