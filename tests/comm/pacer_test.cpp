// When the MPI thread sleeps: the core belongs to who computes.
#include <gtest/gtest.h>

#include <thread>

#include "comm/operations.hpp"

namespace scalemark::pacer_test {
namespace {

using std::chrono::microseconds;

TEST(Pacer, LengthensThePauseWhileTestsFindNothing) {
  Pacer pacer;
  EXPECT_EQ(pacer.pause({.worked = true, .waited = false, .idle = false}), microseconds{50});
  auto before = microseconds{50};
  for (int i = 0; i < 20; ++i) {
    const auto pause = pacer.pause({.worked = false, .waited = false, .idle = false});
    EXPECT_GE(pause, before);
    before = pause;
  }
  EXPECT_EQ(before, microseconds{1000});
  EXPECT_EQ(pacer.pause({.worked = true, .waited = false, .idle = false}), microseconds{50});
}

TEST(Pacer, LeavesACoreThatComputesAloneForSeveralTimesARound) {
  Pacer pacer;
  const auto after = [&](int round) {
    return pacer.pause(
        {.worked = true, .waited = false, .idle = false, .round = microseconds{round}});
  };
  EXPECT_EQ(after(3), microseconds{50});
  EXPECT_EQ(after(30), microseconds{360});
  EXPECT_EQ(after(500), microseconds{400});
}

TEST(Pacer, SpinsOnlyForAMomentAndOnlyForAWaiter) {
  Pacer pacer;
  EXPECT_EQ(pacer.pause({.worked = true, .waited = true, .idle = false}), microseconds{0});
  const auto start = Clock::now();
  while (pacer.pause({.worked = false, .waited = true, .idle = false}) == microseconds{0})
    ASSERT_LT(Clock::now() - start, std::chrono::seconds{10});
  for (int i = 0; i < 20; ++i)
    EXPECT_LE(pacer.pause({.worked = false, .waited = true, .idle = false}), microseconds{200});
}

TEST(Pacer, SleepsForAShareOfWhatAWaiterHasWaited) {
  Pacer pacer;
  const Pacer::Situation nothing{.worked = false, .waited = true, .idle = false};
  while (pacer.pause(nothing) == microseconds{0}) std::this_thread::yield();
  EXPECT_GE(pacer.pause(nothing), microseconds{10});
  std::this_thread::sleep_for(microseconds{2'000});
  EXPECT_GE(pacer.pause(nothing), microseconds{100});
  std::this_thread::sleep_for(microseconds{2'000});
  EXPECT_EQ(pacer.pause(nothing), microseconds{200});
}

TEST(Pacer, TakesALongRoundForOneThatMovedData) {
  Pacer pacer;
  EXPECT_EQ(pacer.pause({.worked = true, .waited = true, .idle = false}), microseconds{0});
  std::this_thread::sleep_for(microseconds{150});
  EXPECT_EQ(pacer.pause({.worked = false, .waited = true, .idle = false}), microseconds{0});
}

TEST(Pacer, TakesALongRoundForOneThatMovedDataWhereNobodyWaits) {
  Pacer pacer;
  const auto after = [&](int round) {
    return pacer.pause(
        {.worked = false, .waited = false, .idle = true, .round = microseconds{round}});
  };
  EXPECT_GE(after(20), microseconds{10'000});
  EXPECT_EQ(after(25), microseconds{300});
}

TEST(Pacer, RestsWhenNothingIsInFlight) {
  Pacer pacer;
  EXPECT_GE(pacer.pause({.worked = false, .waited = false, .idle = true}), microseconds{10'000});
}

}  // namespace
}  // namespace scalemark::pacer_test
