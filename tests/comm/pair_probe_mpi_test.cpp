// Everybody meets everybody once, and what a pair tells is of that pair.
#include <gtest/gtest.h>

#include <set>

#include "comm/pair_probe.hpp"
#include "tests/support/mpi_support.hpp"

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
