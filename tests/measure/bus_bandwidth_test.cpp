// The formulas of nccl-tests at known numbers.
#include "measure/bus_bandwidth.hpp"

#include <gtest/gtest.h>

namespace scalemark::bus_bandwidth_test {
namespace {

TEST(BusBandwidth, FactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::allreduce, 2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::allreduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::allgather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::alltoall, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1.0);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1 << 20, 0.5), 2097152.0);
}

TEST(BusBandwidth, SizesAreWholeBlocksAndNeverNothing) {
  EXPECT_EQ(collective_bytes(Collective::allreduce, 1023, 3), 1020);
  EXPECT_EQ(collective_bytes(Collective::broadcast, 4, 3), 4);
  EXPECT_EQ(collective_bytes(Collective::allgather, 1024, 3), 1020);
  EXPECT_EQ(collective_bytes(Collective::alltoall, 8, 3), 12);  // an element for each
}

}  // namespace
}  // namespace scalemark::bus_bandwidth_test
