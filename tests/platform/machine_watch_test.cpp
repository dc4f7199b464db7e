// Readings of a made machine, of a made GPU, and that a watch of any length keeps a bounded number.
#include "platform/machine_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "platform/tree.hpp"

namespace scalemark::machine_watch_test {
namespace {
using test::Tree;

void machine(Tree& tree) {
  for (const auto& [cpu, khz] : {std::pair{0, "2000000"}, {1, "3000000"}, {2, "9000000"}})
    tree.file("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq",
              std::string(khz) + "\n");
  tree.file("sys/class/hwmon/hwmon0/name", "nvme\n")
      .file("sys/class/hwmon/hwmon0/temp1_input", "99000\n")
      .file("sys/class/hwmon/hwmon1/name", "coretemp\n")
      .file("sys/class/hwmon/hwmon1/temp1_input", "61000\n")
      .file("sys/class/hwmon/hwmon1/temp2_input", "64500\n")
      .file("sys/class/hwmon/hwmon1/temp2_max", "100000\n");
}

TEST(MachineReading, ClockOfTheGivenCpusAndTheHottestSensorOfCpus) {
  Tree tree;
  machine(tree);
  EXPECT_EQ(cpu_mhz({0, 1}, tree.root()), 2500);
  EXPECT_EQ(cpu_celsius(tree.root()), 64.5);
}

TEST(MachineReading, WhatIsNotThereIsUnknown) {
  Tree tree;
  tree.file("sys/class/hwmon/hwmon0/name", "nvme\n");
  EXPECT_EQ(cpu_mhz({0, 1}, tree.root()), std::nullopt);
  EXPECT_EQ(cpu_celsius(tree.root()), std::nullopt);
}

TEST(MachineReading, OfAGpuWhatItsDriverTells) {
  NvmlApi nvml;
  MachineReading none;
  read_gpu(nvml, {}, none);
  EXPECT_EQ(none.gpu_mhz, std::nullopt);
  EXPECT_EQ(none.gpu_errors, std::nullopt);

  nvml.clock = [](NvmlDevice, int type, unsigned* mhz) {
    return *mhz = type == kNvmlSm ? 1980 : 1, 0;
  };
  nvml.temperature = [](NvmlDevice, int, unsigned* celsius) { return *celsius = 71, 0; };
  nvml.power = [](NvmlDevice, unsigned* milliwatts) { return *milliwatts = 650'500, 0; };
  nvml.memory = [](NvmlDevice, NvmlMemory* memory) { return memory->used = 5000, 0; };
  nvml.ecc_errors = [](NvmlDevice, int kind, int, unsigned long long* errors) {
    return *errors = kind == kNvmlCorrected ? 7 : 2, 0;
  };
  MachineReading all;
  read_gpu(nvml, {}, all);
  EXPECT_EQ(all.gpu_mhz, 1980);
  EXPECT_EQ(all.gpu_celsius, 71);
  EXPECT_EQ(all.gpu_watts, 650.5);
  EXPECT_EQ(all.gpu_memory_bytes, 5000);
  EXPECT_EQ(all.gpu_errors, 9);

  nvml.power = [](NvmlDevice, unsigned*) { return 3; };  // not supported
  MachineReading unsupported;
  read_gpu(nvml, {}, unsupported);
  EXPECT_EQ(unsupported.gpu_watts, std::nullopt);
}

TEST(MachineWatch, LooksFromItsBeginToItsEnd) {
  Tree tree;
  machine(tree);
  MachineWatch watch({{0, 1}, true, ""}, 1000, tree.root());
  const auto readings = watch.stop();
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_LE(readings[0].at, readings[1].at);
  for (const MachineReading& reading : readings) {
    EXPECT_EQ(reading.cpu_mhz, 2500);
    EXPECT_EQ(reading.cpu_celsius, 64.5);
    EXPECT_GT(reading.memory_bytes, 1e6);
    EXPECT_TRUE(reading.busy_cpu_seconds);
    EXPECT_FALSE(reading.host_joules);
  }
}

TEST(MachineWatch, OfARankThatIsNotTheFirstOfItsHostOnlyItsOwn) {
  Tree tree;
  machine(tree);
  const auto readings = MachineWatch({{0}, false, ""}, 1000, tree.root()).stop();
  EXPECT_EQ(readings.back().cpu_mhz, 2000);
  EXPECT_FALSE(readings.back().cpu_celsius);
  EXPECT_FALSE(readings.back().busy_cpu_seconds);
}

TEST(MachineWatch, HoweverLongItKeepsNoMoreThanItMay) {
  Tree tree;
  MachineWatch watch({{}, false, ""}, 1e-6, tree.root());
  while (watch.looks() < 3 * MachineWatch::kMostReadings)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto readings = watch.stop();
  EXPECT_LE(readings.size(), MachineWatch::kMostReadings);
  EXPECT_GT(readings.size(), MachineWatch::kMostReadings / 4);
  for (std::size_t i = 1; i < readings.size(); ++i) EXPECT_LE(readings[i - 1].at, readings[i].at);
}

}  // namespace
}  // namespace scalemark::machine_watch_test
