// Copies to, from and between real GPUs; skipped without one.
#include <gtest/gtest.h>

#include "platform/platform.hpp"
#include "probe/gpu_transfers.hpp"
#include "train/device_backend.hpp"

namespace scalemark::gpu_transfers_gpu_test {
namespace {

class GpuTransfers : public testing::Test {
 protected:
  void SetUp() override {
    if (const GpuList list = visible_gpus(); list.gpus.empty()) GTEST_SKIP() << list.reason;
  }
};

TEST_F(GpuTransfers, MoveDataBothWays) {
  const auto copies = measure_gpu_copies(0, 0.01);
  ASSERT_FALSE(copies.empty());
  for (const GpuCopy& copy : copies) {
    EXPECT_GT(copy.to_device, 0);
    EXPECT_GT(copy.from_device, 0);
  }
}

TEST_F(GpuTransfers, MoveDataBetweenEveryPair) {
  const std::size_t count = visible_gpus().gpus.size();
  const auto links = measure_peer_links(0.01);
  EXPECT_EQ(links.size(), count * (count - 1));
  for (const PeerLink& link : links) EXPECT_GT(link.bytes_per_second, 0);
}

TEST_F(GpuTransfers, TheWatchSeesTheGpuAtWork) {
  const auto device = make_device_backend(Device::cuda, 0);
  GpuWatch watch(device->uuid());
  watch.begin_load();
  measure_gpu_copies(0, 0.2);
  watch.end_load();
  const GpuHealth health = watch.health();
  EXPECT_EQ(health.reason, "");
  EXPECT_GT(health.memory_free_bytes.value_or(0), 0);
  EXPECT_TRUE(health.sm_max_mhz);
}

}  // namespace
}  // namespace scalemark::gpu_transfers_gpu_test
