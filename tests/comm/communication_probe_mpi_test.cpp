// Collectives between real ranks come out right at every size, and a wrong element is found and
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "comm/communication_probe.hpp"
#include "support/mpi_support.hpp"
#include "tests/support/mpi_support.hpp"

namespace scalemark::collective_probe_mpi_test {
namespace {

using testing::world;

TEST(CollectiveProbe, EveryCollectiveMovesTheRightData) {
  const auto mpi = make_carrier(Carrier::mpi, world(), 1 << 20);
  const auto own = make_carrier(Carrier::scalemark, world(), 1 << 20);
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : {4, 8, 1000, 65536, 1 << 20}) {
      const auto timing = CollectiveProbe(world(), *mpi).measure(collective, bytes, 1e-3);
      EXPECT_EQ(timing.bytes, collective_bytes(collective, bytes, world().size()));
      EXPECT_EQ(timing.wrong_elements, 0) << to_string(collective) << " " << timing.first_wrong;
      EXPECT_GT(timing.seconds, 0);
      EXPECT_GE(timing.repetitions, 3);
    }
  for (const std::int64_t bytes : {4, 1000, 1 << 20})
    EXPECT_EQ(
        CollectiveProbe(world(), *own).measure(Collective::allreduce, bytes, 1e-3).wrong_elements,
        0);
}

TEST(CollectiveProbe, HasRoomForAnElementOfEveryRank) {
  const auto mpi = make_carrier(Carrier::mpi, world(), 4);
  for (const Collective collective : kCollectives) {
    const auto timing = CollectiveProbe(world(), *mpi).measure(collective, 4, 1e-4);
    EXPECT_EQ(timing.wrong_elements, 0) << to_string(collective);
    const std::vector<float> room(static_cast<std::size_t>(timing.bytes / 4));
    EXPECT_NO_THROW(mpi->put_received(0, room));
  }
}

TEST(CollectiveProbe, ADamagedElementIsFoundAndNamedOnAllRanks) {
  const auto mpi = make_carrier(Carrier::mpi, world(), 1024);
  const int last = world().size() - 1;
  for (const Collective collective : kCollectives) {
    const auto timing =
        CollectiveProbe(world(), *mpi).measure(collective, 1024, 1e-3, world().rank() == last);
    EXPECT_EQ(timing.wrong_elements, 1) << to_string(collective);
    EXPECT_THAT(timing.first_wrong,
                ::testing::HasSubstr("rank " + std::to_string(last) + ": element"));
  }
}

TEST(CollectiveProbe, OnlyTheAllreduceIsScalemarksOwn) {
  const auto own = make_carrier(Carrier::scalemark, world(), 1024);
  EXPECT_THROW(CollectiveProbe(world(), *own).measure(Collective::broadcast, 1024, 1e-3),
               CommError);
}

}  // namespace
}  // namespace scalemark::collective_probe_mpi_test

// Everybody meets everybody once, and what a pair tells is of that pair.
namespace scalemark::pair_probe_test {
namespace {

using testing::world;

TEST(PairRounds, BringEveryTwoTogetherOnce) {
  EXPECT_EQ(pair_rounds(1), 0);
  for (int size = 2; size <= 9; ++size) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < pair_rounds(size); ++round)
      for (int rank = 0; rank < size; ++rank) {
        const int peer = peer_in_round(rank, size, round);
        if (peer < 0) continue;
        ASSERT_NE(peer, rank) << size << " " << round;
        ASSERT_EQ(peer_in_round(peer, size, round), rank) << size << " " << round;
        met.insert({std::min(rank, peer), std::max(rank, peer)});
      }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(size * (size - 1) / 2)) << size;
  }
}

TEST(PairProbe, TimesEveryPairOnItsLowerRank) {
  int mine = 0;
  for (int round = 0; round < pair_rounds(world().size()); ++round)
    for (const PairTiming& timing : measure_pair_round(world(), round, 1 << 16, 1e-3)) {
      ++mine;
      EXPECT_EQ(timing.first, world().rank());
      EXPECT_GT(timing.second, timing.first);
      EXPECT_GT(timing.latency_seconds, 0);
      EXPECT_GT(timing.bytes_per_second, 0);
    }
  EXPECT_EQ(mine, world().size() - 1 - world().rank());
}

}  // namespace
}  // namespace scalemark::pair_probe_test
