// Collectives between real ranks come out right at every size, and a wrong element is found and
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/collective_probe.hpp"
#include "support/mpi_support.hpp"

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
