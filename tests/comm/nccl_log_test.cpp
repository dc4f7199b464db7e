// NCCL's log in memory, and what it says of the transport.
#include "comm/nccl_log.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/test_folder.hpp"

namespace scalemark::nccl_log_test {
namespace {

TEST(NcclTransport, IsWhatTheChannelsNameEachOnce) {
  EXPECT_EQ(nccl_transport("n0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                           "n0:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"),
            "P2P/CUMEM");
  EXPECT_EQ(
      nccl_transport("n0:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n"
                     "n0:1:2 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA\n"
                     "n0:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"),
      "NET/IB/GDRDMA+SHM/direct/direct");
  EXPECT_EQ(nccl_transport("n0:1:2 [0] NCCL INFO NET/Plugin: none found\nBootstrap via eth0\n"),
            "");
}

class NcclLogFile : public testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  static void forget() {
    for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) unsetenv(name);
  }
};

TEST_F(NcclLogFile, HoldsWhatIsWrittenToTheFileThatNcclIsTold) {
  const NcclLog log;
  ASSERT_STREQ(std::getenv("NCCL_DEBUG"), "INFO");
  FILE* file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("first\n", file);
  std::fflush(file);
  EXPECT_EQ(log.text(), "first\n");
  std::fputs("second\n", file);
  std::fclose(file);
  EXPECT_EQ(log.text(6), "second\n");
}

/// Writes as NCCL does.
void write_lines() {
  FILE* file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("n0:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC\n", file);
  std::fputs("n0:1:2 [0] init.cc:1 NCCL WARN no room\n", file);
  std::fclose(file);
}

TEST_F(NcclLogFile, OfTheUserGoesToStderrAndIsReadToo) {
  setenv("NCCL_DEBUG", "info", 1);
  testing::internal::CaptureStderr();
  std::string text;
  {
    const NcclLog log;
    EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "info");
    EXPECT_EQ(std::getenv("NCCL_DEBUG_SUBSYS"), nullptr);
    write_lines();
    for (int i = 0; i < 500 && text.find("no room") == text.npos; ++i) {
      usleep(10'000);
      text = log.text();
    }
  }
  EXPECT_EQ(nccl_transport(text), "P2P/IPC");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), text);
}

TEST_F(NcclLogFile, OfAUserWhoWantsWarningsShowsNoMore) {
  setenv("NCCL_DEBUG", "WARN", 1);
  testing::internal::CaptureStderr();
  {
    const NcclLog log;
    EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "INFO");
    write_lines();
  }  // what is in the pipe is read to its end
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "n0:1:2 [0] init.cc:1 NCCL WARN no room\n");
}

TEST_F(NcclLogFile, InAFileOfTheUserIsReadThere) {
  const TestFolder folder;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_FILE", (folder / "log.%p").c_str(), 1);
  const NcclLog log;
  EXPECT_EQ(log.text(), "");
  setenv("NCCL_DEBUG_FILE", (folder / fmt::format("log.{}", getpid())).c_str(), 1);
  write_lines();
  EXPECT_EQ(nccl_transport(log.text()), "P2P/IPC");
}

}  // namespace
}  // namespace scalemark::nccl_log_test
