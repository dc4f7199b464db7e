// The arithmetic of times that a device tells some steps late.
#include "comm/communication_log.hpp"

#include <gtest/gtest.h>

#include "error.hpp"

namespace scalemark::communication_log_test {
namespace {

/// A device that has passed all events up to a moment.
struct LateDevice {
  double now = 0;
};

class LateOperation : public Pending {
 public:
  LateOperation(const LateDevice& device, OperationTimes times) : device_(device), times_(times) {}
  void wait() override {}
  std::optional<OperationTimes> times() override {
    if (device_.now < times_.wait_end) return std::nullopt;
    return times_;
  }

 private:
  const LateDevice& device_;
  OperationTimes times_;
};

class Log : public ::testing::Test {
 protected:
  LateDevice device;
  CommunicationLog log;
  void add(OperationTimes times, bool of_table = false) {
    log.add(std::make_unique<LateOperation>(device, times), {.of_table = of_table});
  }
};

TEST_F(Log, SumsWaitsAndSpansFirstToLast) {
  device.now = 100;
  add({.posted = 1, .done = 4, .wait_begin = 3, .wait_end = 4});
  add({.posted = 2, .done = 7, .wait_begin = 5, .wait_end = 7});
  log.add_wait(0.5);
  log.end_step();
  const CommunicationTimes times = log.take();
  EXPECT_EQ(times.wait_seconds, std::vector{3.5});
  EXPECT_EQ(times.communication_seconds, 6);
  EXPECT_EQ(times.table_seconds, 0);
}

TEST_F(Log, ReadsStepsThatBecomeKnownLaterInTheirOrder) {
  add({.posted = 1, .done = 2, .wait_begin = 1, .wait_end = 2});
  log.end_step();
  add({.posted = 3, .done = 6, .wait_begin = 4, .wait_end = 6});
  log.end_step();
  EXPECT_THROW(log.take(), CommError);
  device.now = 2;  // the first is known now, and the second is not
  EXPECT_THROW(log.take(), CommError);
  device.now = 6;
  const CommunicationTimes times = log.take();
  EXPECT_EQ(times.wait_seconds, (std::vector<double>{1, 2}));
  EXPECT_EQ(times.communication_seconds, 1 + 3);
  EXPECT_TRUE(log.take().wait_seconds.empty());
}

TEST_F(Log, AnOperationThatIsKnownWaitsForTheOthersOfItsStep) {
  add({.posted = 1, .done = 2, .wait_begin = 1, .wait_end = 2});
  add({.posted = 1, .done = 9, .wait_begin = 2, .wait_end = 9});
  log.end_step();
  device.now = 5;
  EXPECT_THROW(log.take(), CommError);
  device.now = 9;
  EXPECT_EQ(log.take().wait_seconds, std::vector{8.});
}

TEST_F(Log, TakesTheLongestOfATablesOperationsInEveryStep) {
  device.now = 100;
  add({.posted = 0, .done = 2, .wait_begin = 2, .wait_end = 2}, /*of_table=*/true);
  add({.posted = 0, .done = 3, .wait_begin = 2, .wait_end = 3}, /*of_table=*/true);
  add({.posted = 0, .done = 9, .wait_begin = 3, .wait_end = 9});
  log.end_step();
  add({.posted = 0, .done = 4, .wait_begin = 4, .wait_end = 4}, /*of_table=*/true);
  log.end_step();
  EXPECT_EQ(log.take().table_seconds, 3 + 4);
}

TEST_F(Log, AStepWithoutOperationsWaitsForNothing) {
  log.end_step();
  const CommunicationTimes times = log.take();
  EXPECT_EQ(times.wait_seconds, std::vector{0.});
  EXPECT_EQ(times.communication_seconds, 0);
}

TEST_F(Log, HandsOutEveryOperationWhereItIsAskedTo) {
  const auto add_bucket = [&](int bucket, OperationTimes times) {
    log.add(std::make_unique<LateOperation>(device, times),
            {.bucket = bucket, .bytes = 100 + bucket});
  };
  device.now = 100;
  log.keep_operations();
  add_bucket(0, {.posted = 1, .done = 4});
  add_bucket(1, {.posted = 2, .done = 7});
  log.end_step();
  add_bucket(0, {.posted = 8, .done = 9});
  log.end_step();
  const auto operations = log.take().operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[1].step, 0u);
  EXPECT_EQ(operations[1].load.bucket, 1);
  EXPECT_EQ(operations[1].load.bytes, 101);
  EXPECT_EQ(operations[1].times.done, 7);
  EXPECT_EQ(operations[2].step, 1u);
  EXPECT_EQ(operations[2].times.posted, 8);
  EXPECT_TRUE(log.take().operations.empty());
}

}  // namespace
}  // namespace scalemark::communication_log_test
