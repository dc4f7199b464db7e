// NCCL's collectives as preflight times and checks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/communication_probe.hpp"
#include "tests/comm/cuda/gpu_support.hpp"
#include "tests/support/mpi_support.hpp"

namespace scalemark::testing {
namespace {

class GpuCarrier : public ::testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override {
    gpu_ = gpu_of(world());
    if (gpu_ < 0) GTEST_SKIP() << "no GPU";
  }
  int gpu_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Kinds, GpuCarrier,
                         ::testing::Values(Carrier::nccl, Carrier::nccl_in_place),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(GpuCarrier, EveryCollectiveMovesTheRightData) {
  const auto carrier = make_carrier(GetParam(), world(), 1 << 20, gpu_);
  for (const Collective collective : kCollectives) {
    if (!carrier->carries(collective)) continue;
    for (const std::int64_t bytes : {4, 1000, 65536, 1 << 20}) {
      const auto timing = CollectiveProbe(world(), *carrier).measure(collective, bytes, 1e-3);
      EXPECT_EQ(timing.wrong_elements, 0) << to_string(collective) << " " << timing.first_wrong;
      EXPECT_GT(timing.seconds, 0);
      EXPECT_GE(timing.repetitions, 3);
    }
  }
}

TEST_P(GpuCarrier, ADamagedElementIsFound) {
  const auto carrier = make_carrier(GetParam(), world(), 1024, gpu_);
  const auto timing = CollectiveProbe(world(), *carrier)
                          .measure(Collective::allreduce, 1024, 1e-3, world().rank() == 0);
  EXPECT_EQ(timing.wrong_elements, 1);
}

/// The marks between short ones would be a large part of them: 20 at a time have one mean.
TEST_P(GpuCarrier, ShortOnesAreTimedTogetherLongOnesEach) {
  const auto carrier = make_carrier(GetParam(), world(), 1 << 17, gpu_);
  const std::vector<float> zeros(1 << 15, 0.f);
  carrier->put_received(0, zeros);
  const auto shorter = carrier->run(Collective::allreduce, (1 << 14) - 1, 50);
  ASSERT_EQ(shorter.size(), 50u);
  for (const std::size_t first : {0, 20, 40})
    for (std::size_t i = first; i < std::min<std::size_t>(first + 20, 50); ++i)
      EXPECT_EQ(shorter[i], shorter[first]) << i;
  EXPECT_THAT(shorter, ::testing::Each(::testing::Gt(0)));
  const auto longer = carrier->run(Collective::allreduce, 1 << 14, 50);
  ASSERT_EQ(longer.size(), 50u);
  EXPECT_THAT(longer, ::testing::Not(::testing::Each(longer.front())));
}

}  // namespace
}  // namespace scalemark::testing
