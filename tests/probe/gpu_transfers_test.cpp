// A build without CUDA says so.
#include "probe/gpu_transfers.hpp"

#include <gtest/gtest.h>

#include "error.hpp"

namespace scalemark::gpu_transfers_test {
namespace {

TEST(GpuTransfers, NeedABuildWithCuda) {
  EXPECT_THROW(gpu_traits(0), EnvironmentError);
  EXPECT_THROW(measure_gpu_copies(0, 0.01), EnvironmentError);
  EXPECT_THROW(measure_peer_links(0.01), EnvironmentError);
}

}  // namespace
}  // namespace scalemark::gpu_transfers_test
