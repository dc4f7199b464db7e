// Wire bytes in closed form, and the transport that follows from hosts and Open MPI's settings.
#include "comm/mca.hpp"

#include <gtest/gtest.h>

namespace scalemark::mca_test {
namespace {

TEST(WireBytes, OfTheRing) {
  const auto ring = [](std::int64_t bytes, int ranks) {
    return allreduce_wire_bytes(AllreduceAlgorithm::ring, bytes, ranks);
  };
  EXPECT_EQ(ring(1000, 1), 0);
  EXPECT_EQ(ring(1000, 2), 1000);
  EXPECT_EQ(ring(1000, 4), 1500);
  EXPECT_EQ(ring(1000, 3), 1334);  // 1333.3 rounded up
  EXPECT_EQ(ring(std::int64_t{1} << 40, 1024), 2 * (std::int64_t{1} << 30) * 1023);
}

TEST(WireBytes, OfRecursiveDoubling) {
  const auto doubling = [](std::int64_t bytes, int ranks) {
    return allreduce_wire_bytes(AllreduceAlgorithm::recursive_doubling, bytes, ranks);
  };
  EXPECT_EQ(doubling(100, 1), 0);
  EXPECT_EQ(doubling(100, 2), 100);
  EXPECT_EQ(doubling(100, 8), 300);
  EXPECT_EQ(doubling(100, 6), 300);  // two rounds of four ranks, and one for the two that are left
}

TEST(Transport, FollowsHostsAndSettings) {
  EXPECT_EQ(derive_transport({.ranks = 1}), "none");
  EXPECT_EQ(derive_transport({.ranks = 2, .hosts = 1}), "vader");
  EXPECT_EQ(derive_transport({.ranks = 2, .hosts = 1, .library_major = 5}), "sm");
  EXPECT_EQ(derive_transport({.ranks = 2, .hosts = 2}), "tcp");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2}), "vader+tcp");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2, .btl = "tcp,self"}), "tcp");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 1, .btl = "^vader"}), "tcp");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2, .pml = "ucx"}), "ucx");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2, .pml = "ob1", .fabric = true}), "vader+tcp");
}

TEST(Transport, IsUnknownWhereTheLibraryMayHaveChosenAFabric) {
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2, .fabric = true}), "");
  EXPECT_EQ(derive_transport({.ranks = 4, .hosts = 2, .pml = "^ucx"}), "");
}

}  // namespace
}  // namespace scalemark::mca_test
