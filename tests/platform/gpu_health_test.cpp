// What is made of a GPU's samples and of a kernel log; without a GPU, the reason.
#include "platform/gpu_health.hpp"

#include <gtest/gtest.h>

#include "platform/nvml.hpp"
#include "platform/tree.hpp"

namespace scalemark::gpu_health_test {
namespace {

using Names = std::vector<std::string>;

TEST(GpuLoad, LooksWithoutWorkDoNotCount) {
  const GpuLoad load = summarise({{210, 405, 0x1},
                                  {1800, 2619, 0x4},
                                  {1740, 2619, 0x4 | 0x20},
                                  {210, 405, 0x1 | 0x40},
                                  {1980, 2619, 0x0}});
  EXPECT_EQ(load.sm_mhz, 1800);
  EXPECT_EQ(load.memory_mhz, 2619);
  EXPECT_EQ(load.slowdowns, Names{"sw_thermal"});
  EXPECT_EQ(load.power_capped, true);
}

TEST(GpuLoad, EveryReasonOfAFaultIsNamed) {
  EXPECT_EQ(summarise({{1, 1, 0x8}, {1, 1, 0x40}, {1, 1, 0x80 | 0x20}}).slowdowns,
            (Names{"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}));
  const GpuLoad chosen = summarise({{1, 1, 0x2 | 0x10 | 0x100}});  // clocks that someone set
  EXPECT_EQ(chosen.slowdowns, Names{});
  EXPECT_EQ(chosen.power_capped, false);
}

TEST(GpuLoad, WhatNvmlDoesNotTellIsUnknown) {
  for (const auto& samples : {std::vector<GpuSample>{},
                              {{std::nullopt, std::nullopt, std::nullopt}},
                              {{210, 405, 0x1}}}) {
    const GpuLoad load = summarise(samples);
    EXPECT_EQ(load.sm_mhz, std::nullopt);
    EXPECT_EQ(load.slowdowns, std::nullopt);
    EXPECT_EQ(load.power_capped, std::nullopt);
  }
  EXPECT_EQ(summarise({{1500, std::nullopt, std::nullopt}}).sm_mhz, 1500);
}

TEST(KernelLog, HasTheXidsOfEachGpu) {
  const std::string log =
      "6,1000,5;NVRM: Xid (PCI:0000:3B:00): 79, pid=1234, GPU has fallen off the bus.\n"
      "4,1001,6;eth0: link up\n"
      "3,1002,7;NVRM: Xid (PCI:0000:af:00.0): 48, DBE\n"
      "3,1003,8;NVRM: Xid (PCI:0000:3b:00): not a number\n"
      "3,1004,9;NVRM: Xid (PCI:";
  const std::vector<std::pair<std::string, int>> expected{{"0000:3b:00", 79}, {"0000:af:00", 48}};
  EXPECT_EQ(parse_xids(log), expected);
  EXPECT_TRUE(parse_xids("").empty());
}

TEST(Pci, IdsAndNodesAreTheKernels) {
  EXPECT_EQ(kernel_bus_id("00000000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(kernel_bus_id("00010000:3B:00.0"), "00010000:3b:00.0");
  test::Tree tree;
  tree.file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n")
      .file("sys/bus/pci/devices/0000:5e:00.0/numa_node", "-1\n");
  EXPECT_EQ(numa_node_of_pci("0000:3b:00.0", tree.root()), 1);
  EXPECT_EQ(numa_node_of_pci("0000:5e:00.0", tree.root()), std::nullopt);
  EXPECT_EQ(numa_node_of_pci("0000:af:00.0", tree.root()), std::nullopt);
}

TEST(GpuDirect, IsAModule) {
  test::Tree tree;
  EXPECT_FALSE(has_peermem(tree.root()));
  tree.file("sys/module/nvidia_peermem/version", "580\n");
  EXPECT_TRUE(has_peermem(tree.root()));
}

TEST(GpuWatch, OfNoGpuSaysWhy) {
  GpuWatch watch("GPU-00000000-0000-0000-0000-000000000000");
  watch.begin_load();
  watch.end_load();
  const GpuHealth health = watch.health();
  EXPECT_NE(health.reason, "");
  EXPECT_FALSE(health.memory_free_bytes);
  EXPECT_FALSE(health.xids);
}

}  // namespace
}  // namespace scalemark::gpu_health_test
