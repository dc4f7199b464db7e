// The CPU as a device, and the refusal of a GPU that is not there.
#include "train/device_backend.hpp"

#include <gtest/gtest.h>

#include "error.hpp"

namespace scalemark {
namespace {

TEST(CpuBackend, GivesOneTimePerStep) {
  const auto device = make_device_backend(Device::cpu, 0);
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_TRUE(device->device().is_cpu());
  EXPECT_TRUE(device->native(Precision::fp32));
  const auto clock = device->make_step_clock();
  EXPECT_TRUE(clock->seconds().empty());
  for (int i = 0; i < 4; ++i) clock->mark();
  ASSERT_EQ(clock->seconds().size(), 3u);
  for (const double seconds : clock->seconds()) EXPECT_GE(seconds, 0);
}

TEST(CpuBackend, ReadsAScalarAtOnce) {
  const auto reader = make_device_backend(Device::cpu, 0)->make_scalar_reader();
  EXPECT_EQ(reader->exchange(at::full({}, 2.5)), 2.5);
  EXPECT_EQ(reader->finish(), std::nullopt);
}

TEST(DeviceFactory, WithoutCudaRefusesItAndAutoIsTheCpu) {
  EXPECT_EQ(make_device_backend(Device::automatic, 0)->name(), "cpu");
  EXPECT_THROW(make_device_backend(Device::cuda, 0), EnvironmentError);
}

}  // namespace
}  // namespace scalemark
