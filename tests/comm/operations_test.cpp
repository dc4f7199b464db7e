// When the MPI thread sleeps: the core belongs to who computes.
#include "comm/operations.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace scalemark::operations_test {
namespace {

using std::chrono::microseconds;

TEST(PollBackoff, LengthensThePauseWhileTestsFindNothing) {
  PollBackoff backoff;
  EXPECT_EQ(backoff.pause({.worked = true, .waited = false, .idle = false}), microseconds{50});
  auto before = microseconds{50};
  for (int i = 0; i < 20; ++i) {
    const auto pause = backoff.pause({.worked = false, .waited = false, .idle = false});
    EXPECT_GE(pause, before);
    before = pause;
  }
  EXPECT_EQ(before, microseconds{1000});
  EXPECT_EQ(backoff.pause({.worked = true, .waited = false, .idle = false}), microseconds{50});
}

TEST(PollBackoff, LeavesACoreThatComputesAloneForSeveralTimesARound) {
  PollBackoff backoff;
  const auto after = [&](int round) {
    return backoff.pause(
        {.worked = true, .waited = false, .idle = false, .round = microseconds{round}});
  };
  EXPECT_EQ(after(3), microseconds{50});
  EXPECT_EQ(after(30), microseconds{360});
  EXPECT_EQ(after(500), microseconds{400});
}

TEST(PollBackoff, SpinsOnlyForAMomentAndOnlyForAWaiter) {
  PollBackoff backoff;
  EXPECT_EQ(backoff.pause({.worked = true, .waited = true, .idle = false}), microseconds{0});
  const auto start = Clock::now();
  while (backoff.pause({.worked = false, .waited = true, .idle = false}) == microseconds{0})
    ASSERT_LT(Clock::now() - start, std::chrono::seconds{10});
  for (int i = 0; i < 20; ++i)
    EXPECT_LE(backoff.pause({.worked = false, .waited = true, .idle = false}), microseconds{200});
}

TEST(PollBackoff, SleepsForAShareOfWhatAWaiterHasWaited) {
  PollBackoff backoff;
  const PollBackoff::Situation nothing{.worked = false, .waited = true, .idle = false};
  while (backoff.pause(nothing) == microseconds{0}) std::this_thread::yield();
  EXPECT_GE(backoff.pause(nothing), microseconds{10});
  std::this_thread::sleep_for(microseconds{2'000});
  EXPECT_GE(backoff.pause(nothing), microseconds{100});
  std::this_thread::sleep_for(microseconds{2'000});
  EXPECT_EQ(backoff.pause(nothing), microseconds{200});
}

TEST(PollBackoff, TakesALongRoundForOneThatMovedData) {
  PollBackoff backoff;
  EXPECT_EQ(backoff.pause({.worked = true, .waited = true, .idle = false}), microseconds{0});
  std::this_thread::sleep_for(microseconds{150});
  EXPECT_EQ(backoff.pause({.worked = false, .waited = true, .idle = false}), microseconds{0});
}

TEST(PollBackoff, TakesALongRoundForOneThatMovedDataWhereNobodyWaits) {
  PollBackoff backoff;
  const auto after = [&](int round) {
    return backoff.pause(
        {.worked = false, .waited = false, .idle = true, .round = microseconds{round}});
  };
  EXPECT_GE(after(20), microseconds{10'000});
  EXPECT_EQ(after(25), microseconds{300});
}

TEST(PollBackoff, RestsWhenNothingIsInFlight) {
  PollBackoff backoff;
  EXPECT_GE(backoff.pause({.worked = false, .waited = false, .idle = true}), microseconds{10'000});
}

}  // namespace
}  // namespace scalemark::operations_test
