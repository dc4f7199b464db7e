// The CPU as a device, and the refusal of a GPU that is not there.
#include "train/device_backend.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark::device_backend_test {
namespace {

TEST(CpuBackend, GivesOneTimePerStep) {
  const auto device = make_device_backend(Device::cpu, 0);
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_TRUE(device->device().is_cpu());
  EXPECT_TRUE(device->native(Precision::fp32));
  const auto clock = device->make_step_clock();
  EXPECT_TRUE(clock->seconds().empty());
  const double start = steady_seconds();
  for (const useconds_t pause : {0, 2000, 1000, 3000}) {
    usleep(pause);  // at least as long
    clock->mark();
  }
  const double most = steady_seconds() - start;
  ASSERT_EQ(clock->seconds().size(), 3u);
  const double least[] = {0.002, 0.001, 0.003};
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(clock->seconds()[i], least[i]);
    sum += clock->seconds()[i];
  }
  EXPECT_LE(sum, most);
}

TEST(CpuBackend, ItsClockLeavesPausesOut) {
  const auto clock = make_device_backend(Device::cpu, 0)->make_step_clock();
  clock->mark();
  clock->pause();
  clock->mark();
  EXPECT_TRUE(clock->seconds().empty());
}

TEST(CpuBackend, TimeBelongsToThePhaseThatWasEntered) {
  const auto phases = make_device_backend(Device::cpu, 0)->make_phase_clock();
  const double start = steady_seconds();
  usleep(3000);  // nobody's
  const double first = steady_seconds();
  phases->enter(StepPhase::forward);
  usleep(2000);
  phases->enter(StepPhase::optimizer);
  usleep(1000);
  phases->enter(StepPhase::forward);
  usleep(2000);
  phases->pause();
  const double most = steady_seconds() - first;
  usleep(3000);
  phases->pause();  // nothing was entered
  const PhaseSeconds& seconds = phases->seconds();
  EXPECT_GE(seconds[static_cast<std::size_t>(StepPhase::forward)], 0.004);
  EXPECT_GE(seconds[static_cast<std::size_t>(StepPhase::optimizer)], 0.001);
  EXPECT_LE(std::accumulate(seconds.begin(), seconds.end(), 0.), most);
  EXPECT_GT(steady_seconds() - start, most + 0.006);
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
}  // namespace scalemark::device_backend_test
