// Allreduce times that follow by hand from latency and rate.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/projection/step_model.hpp"

namespace scalemark::allreduce_cost_test {
namespace {

/// One rank a node: 1 us a message, 1 ns a byte.
Network flat() { return {{0, 0}, {1e-6, 1e-9}, 0, 1}; }
/// Nodes of 8, inside ten times as fast.
Network nodes_of_8() { return {{1e-7, 1e-10}, {1e-6, 1e-9}, 0, 8}; }

double seconds(double bytes, std::int64_t ranks, const Network& network, Allreduce algorithm) {
  return allreduce_cost(bytes, ranks, network, algorithm).seconds;
}

TEST(AllreduceCost, OneRankOrNothingToSendIsFree) {
  for (const Allreduce algorithm : {Allreduce::automatic, Allreduce::ring, Allreduce::tree,
                                    Allreduce::doubling, Allreduce::hierarchical}) {
    EXPECT_EQ(seconds(1e6, 1, flat(), algorithm), 0);
    EXPECT_EQ(seconds(0, 8, flat(), algorithm), 0);
  }
}

TEST(AllreduceCost, ByHand) {
  EXPECT_DOUBLE_EQ(seconds(1e6, 4, flat(), Allreduce::ring), 6e-6 + 1.5e-3);
  EXPECT_DOUBLE_EQ(seconds(1e6, 4, flat(), Allreduce::doubling), 2 * (1e-6 + 1e-3));
  EXPECT_DOUBLE_EQ(seconds(1e6, 5, flat(), Allreduce::doubling), 4 * (1e-6 + 1e-3));
  const double way = std::sqrt(1e-3) + std::sqrt(2 * 2 * 1e-6);
  EXPECT_DOUBLE_EQ(seconds(1e6, 4, flat(), Allreduce::tree), 2 * way * way);
  Network summing = flat();
  summing.sum_seconds_per_byte = 1e-10;
  EXPECT_NEAR(seconds(1e6, 4, summing, Allreduce::ring), 6e-6 + 1.5e-3 + 0.75e-4, 1e-12);
}

TEST(AllreduceCost, OfNodes) {
  // Within a node no byte leaves it.
  EXPECT_DOUBLE_EQ(seconds(1e6, 8, nodes_of_8(), Allreduce::ring), 14e-7 + 1.75e-4);
  EXPECT_DOUBLE_EQ(seconds(1e6, 8, nodes_of_8(), Allreduce::hierarchical), 14e-7 + 1.75e-4);
  EXPECT_DOUBLE_EQ(seconds(1e6, 16, nodes_of_8(), Allreduce::hierarchical),
                   14e-7 + 1.75e-4 + 2e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(seconds(1e6, 16, nodes_of_8(), Allreduce::ring), 30e-6 + 1.875e-3);
  // Three rounds within, one in which 8 ranks share the way out.
  EXPECT_DOUBLE_EQ(seconds(1e6, 16, nodes_of_8(), Allreduce::doubling),
                   3 * (1e-7 + 1e-4) + 1e-6 + 8e-3);
}

TEST(AllreduceCost, GrowsWithRanksAndBytes) {
  for (const Allreduce algorithm : {Allreduce::ring, Allreduce::tree, Allreduce::hierarchical}) {
    double before = 0;
    for (std::int64_t ranks = 2; ranks <= 131'072; ranks *= 2) {
      const double now = seconds(1e6, ranks, nodes_of_8(), algorithm);
      EXPECT_GE(now, before) << ranks << " " << to_string(algorithm);
      EXPECT_GT(seconds(2e6, ranks, nodes_of_8(), algorithm), now);
      before = now;
    }
  }
}

TEST(AllreduceCost, OnAnInfinitelyFastNetworkIsFree) {
  EXPECT_EQ(seconds(1e9, 100'000, Network{{0, 0}, {0, 0}, 0, 8}, Allreduce::automatic), 0);
}

TEST(AllreduceCost, AutoTakesTheCheapest) {
  EXPECT_EQ(allreduce_cost(1e8, 4, flat()).algorithm, Allreduce::ring);
  EXPECT_EQ(allreduce_cost(1e6, 100'000, flat()).algorithm, Allreduce::tree);
  EXPECT_EQ(allreduce_cost(1e8, 64, nodes_of_8()).algorithm, Allreduce::hierarchical);
  for (const std::int64_t ranks : {2, 3, 8, 9, 100, 4096, 100'000})
    for (const Allreduce algorithm : {Allreduce::ring, Allreduce::tree, Allreduce::hierarchical})
      EXPECT_LE(allreduce_cost(1e6, ranks, nodes_of_8()).seconds,
                seconds(1e6, ranks, nodes_of_8(), algorithm));
}

TEST(AllreduceCost, ItsHalvesByHand) {
  Network summing = flat();
  summing.sum_seconds_per_byte = 1e-10;
  const auto half = [&](Collective collective, const Network& network, Allreduce algorithm,
                        std::int64_t ranks) {
    return collective_cost(collective, 1e6, ranks, network, algorithm).seconds;
  };
  EXPECT_DOUBLE_EQ(half(Collective::allgather, summing, Allreduce::ring, 4), 3e-6 + 0.75e-3);
  EXPECT_DOUBLE_EQ(half(Collective::reduce_scatter, summing, Allreduce::ring, 4),
                   3e-6 + 0.75e-3 + 0.75e-4);
  // Within the node, and between two of them what one rank has of all bytes.
  EXPECT_DOUBLE_EQ(half(Collective::allgather, nodes_of_8(), Allreduce::hierarchical, 16),
                   7e-7 + 0.875e-4 + 1e-6 + 0.5e-3);
  Network nodes = nodes_of_8();
  nodes.sum_seconds_per_byte = 1e-10;
  for (const Network& network : {summing, nodes})
    for (const Allreduce algorithm : {Allreduce::ring, Allreduce::hierarchical})
      for (const std::int64_t ranks : {1, 2, 3, 8, 16, 100})
        EXPECT_NEAR(half(Collective::reduce_scatter, network, algorithm, ranks) +
                        half(Collective::allgather, network, algorithm, ranks),
                    seconds(1e6, ranks, network, algorithm), 1e-12)
            << to_string(algorithm) << " of " << ranks;
}

TEST(AllreduceCost, ItsHalvesAreRings) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    EXPECT_EQ(collective_cost(collective, 1e8, 64, nodes_of_8()).algorithm,
              Allreduce::hierarchical);
    EXPECT_EQ(collective_cost(collective, 1e6, 100'000, flat()).algorithm, Allreduce::ring);
    EXPECT_EQ(collective_cost(collective, 1e6, 1, flat()).seconds, 0);
    EXPECT_EQ(collective_cost(collective, 0, 8, flat()).seconds, 0);
  }
  EXPECT_TRUE(has_half(Allreduce::automatic) && has_half(Allreduce::hierarchical));
  EXPECT_FALSE(has_half(Allreduce::tree) || has_half(Allreduce::doubling));
}

TEST(AllreduceCost, NamesAreReadBack) {
  for (const Allreduce algorithm : {Allreduce::automatic, Allreduce::ring, Allreduce::tree,
                                    Allreduce::doubling, Allreduce::hierarchical})
    EXPECT_EQ(allreduce_from(to_string(algorithm)), algorithm);
  EXPECT_EQ(allreduce_from("rings"), std::nullopt);
}

}  // namespace
}  // namespace scalemark::allreduce_cost_test
