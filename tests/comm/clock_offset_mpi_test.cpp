// Clocks of one machine agree within the stated uncertainty, and one that is set wrong is found.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/clock_offset.hpp"
#include "tests/support/mpi_support.hpp"

namespace scalemark::clock_offset_test {
namespace {

using testing::world;

TEST(ClockOffset, OfOneMachineIsZeroWithinItsUncertainty) {
  const ClockOffset offset = measure_clock_offset(world());
  EXPECT_LE(std::abs(offset.seconds), offset.uncertainty_seconds);
  if (world().rank() == 0) {
    EXPECT_EQ(offset.uncertainty_seconds, 0);
  } else {
    EXPECT_GT(offset.uncertainty_seconds, 0);
    EXPECT_LT(offset.uncertainty_seconds, 1);
  }
}

TEST(ClockOffset, FindsClocksThatAreAhead) {
  const double ahead = 1000.0 * world().rank();
  const ClockOffset offset =
      measure_clock_offset(world(), [&] { return steady_seconds() + ahead; });
  EXPECT_LE(std::abs(offset.seconds - ahead), offset.uncertainty_seconds);
  EXPECT_GE(offset.measured_at, ahead);
}

TEST(ClockOffset, ItsUncertaintyHoldsWhereTheWayBackIsSlower) {
  // The peer's clock is read, and then it takes its time: the worst case of half a round trip.
  const auto late_answer = [] {
    const double now = steady_seconds();
    if (world().rank() > 0)
      while (steady_seconds() < now + 1e-3) continue;
    return now;
  };
  const ClockOffset offset = measure_clock_offset(world(), late_answer, 3);
  if (world().rank() == 0) return;
  EXPECT_GE(offset.uncertainty_seconds, 0.5e-3);
  EXPECT_LE(std::abs(offset.seconds), offset.uncertainty_seconds);
}

TEST(ClockAlignment, InterpolatesAClockThatGainsTime) {
  // Rank 0's clock says t; this one 100 + t at t = 0 and 102 + t at t = 10.
  const ClockAlignment alignment{{100, 100, 0.25}, {112, 102, 0.5}};
  EXPECT_DOUBLE_EQ(alignment.on_rank_0(100), 0);
  EXPECT_DOUBLE_EQ(alignment.on_rank_0(112), 10);
  EXPECT_DOUBLE_EQ(alignment.on_rank_0(106), 5);
  EXPECT_EQ(alignment.uncertainty_seconds(), 0.5);
}

TEST(ClockAlignment, OfOneRankChangesNothing) { EXPECT_EQ(ClockAlignment{}.on_rank_0(7.5), 7.5); }

}  // namespace
}  // namespace scalemark::clock_offset_test
