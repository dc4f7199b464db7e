// NCCL's log in memory, and what it says of the transport.
#include "comm/nccl_log.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

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

class Log : public testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  static void forget() {
    for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) unsetenv(name);
  }
};

TEST_F(Log, HoldsWhatIsWrittenToTheFileThatNcclIsTold) {
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

TEST_F(Log, OfTheUserIsLeftAlone) {
  setenv("NCCL_DEBUG", "WARN", 1);
  const NcclLog log;
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "WARN");
  EXPECT_EQ(std::getenv("NCCL_DEBUG_FILE"), nullptr);
  EXPECT_EQ(log.text(), "");
}

}  // namespace
}  // namespace scalemark::nccl_log_test
