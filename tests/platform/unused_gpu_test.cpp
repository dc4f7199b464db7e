// Machines that have GPUs and cannot use them, made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "platform/gpu_health.hpp"
#include "platform/tree.hpp"

namespace scalemark::unused_gpu_test {
namespace {
using testing::HasSubstr;

constexpr const char* kCuda = "the driver supports CUDA 11.4, this build needs CUDA 13.0";

/// With a GPU on its bus, beside a network card of the same vendor.
test::Tree machine() {
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
      .file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
      .file("sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n")
      .file("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n");
  return tree;
}

GpuList driver_shows(bool mig) {
  GpuList list;
  list.of_machine.emplace_back();
  list.of_machine[0].mig = mig;
  list.gpus = list.of_machine;
  return list;
}

TEST(UnusedGpu, NothingWhereThereIsNoneOrWhereItIsHiddenOnPurpose) {
  const test::Tree bare, tree = machine();
  EXPECT_EQ(why_gpus_are_unused({}, {}, kCuda, bare.root()), "");
  EXPECT_EQ(why_gpus_are_unused({}, "", kCuda, tree.root()), "");
  EXPECT_EQ(why_gpus_are_unused({}, "-1", kCuda, tree.root()), "");
}

TEST(UnusedGpu, WithoutADriver) {
  const test::Tree tree = machine();
  EXPECT_THAT(
      why_gpus_are_unused({}, {}, kCuda, tree.root()),
      HasSubstr("1 NVIDIA GPU of this machine is not used: the driver's device files are not "
                "there: load the driver"));
}

TEST(UnusedGpu, WithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may open everything";
  test::Tree tree = machine();
  tree.file("dev/nvidiactl", "");
  std::filesystem::permissions(tree.root() / "dev/nvidiactl", std::filesystem::perms::none);
  EXPECT_THAT(why_gpus_are_unused({}, {}, kCuda, tree.root()), HasSubstr("no permission for "));
}

TEST(UnusedGpu, WhereTheJobWasGivenNone) {
  test::Tree tree = machine();
  tree.file("dev/nvidiactl", "");
  GpuList list;
  list.reason = "the NVIDIA driver is loaded but shows no GPU";
  EXPECT_THAT(why_gpus_are_unused(list, {}, kCuda, tree.root()), HasSubstr("ask Slurm for GPUs"));
}

TEST(UnusedGpu, WithAnOldDriverOrMigWithoutASlice) {
  test::Tree tree = machine();
  tree.file("dev/nvidiactl", "");
  EXPECT_THAT(why_gpus_are_unused(driver_shows(false), {}, kCuda, tree.root()), HasSubstr(kCuda));
  EXPECT_THAT(why_gpus_are_unused(driver_shows(true), {}, kCuda, tree.root()),
              HasSubstr("MIG mode is on without a slice"));
  GpuList none = driver_shows(false);
  none.gpus.clear();
  none.reason = "CUDA_VISIBLE_DEVICES=\"7\" names none of the 1 GPUs";
  EXPECT_THAT(why_gpus_are_unused(none, "7", kCuda, tree.root()), HasSubstr("unset it"));
}

TEST(UnusedGpu, WhereItHasFallenOffTheBus) {
  test::Tree tree = machine();
  tree.file("dev/nvidiactl", "");
  GpuList list = driver_shows(false);
  list.gpus.clear();
  list.reason = list.of_machine[0].reason = "GPU 0: GPU is lost";
  EXPECT_THAT(why_gpus_are_unused(list, {}, kCuda, tree.root()),
              HasSubstr("is not used: GPU 0: GPU is lost: ask its administrator"));
}

}  // namespace
}  // namespace scalemark::unused_gpu_test
