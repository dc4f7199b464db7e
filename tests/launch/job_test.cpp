// What mpirun adds to the words of a rank that failed.
#include "launch/job.hpp"

#include <gtest/gtest.h>

namespace scalemark::job_test {
namespace {

const std::string kDashes(74, '-');

std::string block(const std::string& text) { return kDashes + "\n" + text + "\n" + kDashes + "\n"; }

const std::string kPrimary = block(
    "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per "
    "user-direction, the job has been aborted.");
const std::string kDetected = block(
    "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job "
    "to be terminated. The first process to do so was:\n\n  Process name: [[1,1],1]\n  Exit code: "
    "4");
const std::string kKilled =
    block("mpirun noticed that process rank 1 with PID 0 on node n exited on signal 9 (Killed).");

/// However the bytes are cut.
void expect_passed(const std::string& from, const std::string& to) {
  for (const std::size_t piece : {from.size(), std::size_t{1}, std::size_t{7}, std::size_t{80}}) {
    LauncherOutputFilter filter;
    std::string passed;
    for (std::size_t i = 0; i < from.size(); i += piece)
      passed += filter.pass(from.substr(i, piece));
    EXPECT_EQ(passed + filter.rest(), to) << "in pieces of " << piece;
  }
}

TEST(LauncherOutputFilter, IsLeftOut) {
  const std::string words = "scalemark: rank 1: out of memory\n";
  expect_passed(words + kPrimary + kDetected, words);
  expect_passed(kPrimary + words + kDetected + "end", words + "end");
  expect_passed(
      block("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 5."),
      "");
}

TEST(LauncherOutputFilter, WhatTellsMoreStays) {
  expect_passed(kPrimary + kKilled, kKilled);
  expect_passed(block("There are not enough slots available"),
                block("There are not enough slots available"));
  expect_passed(std::string(64, '-') + "\ntotal images/sec: 5\n",
                std::string(64, '-') + "\ntotal images/sec: 5\n");
  expect_passed(kDashes + "\n", kDashes + "\n");
  expect_passed(kDashes, kDashes);
}

TEST(LauncherOutputFilter, ALineWithoutAnEndPassesAtOnce) {
  LauncherOutputFilter filter;
  EXPECT_EQ(filter.pass("[1/9] 3 s left\r"), "[1/9] 3 s left\r");
  EXPECT_EQ(filter.pass("--"), "");
  EXPECT_EQ(filter.pass("flag"), "--flag");
}

}  // namespace
}  // namespace scalemark::job_test
