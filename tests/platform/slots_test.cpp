// Slots cut from tables of machines: equal shares, mixed layouts, and every way to get them wrong.
#include "platform/slots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"

namespace scalemark::slots_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Four cores of two threads: 0 and 4, 1 and 5, ...; near the first two a GPU, near the others one
/// in MIG mode with two slices.
SlotSource machine() {
  SlotSource source;
  source.cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  source.usable_cores = 4;
  GpuInfo whole, sliced;
  whole.uuid = "GPU-a";
  whole.name = "H100";
  whole.near_cpus = {0, 1, 4, 5};
  sliced.index = 1;
  sliced.uuid = "GPU-b";
  sliced.name = "A100";
  sliced.near_cpus = {2, 3, 6, 7};
  sliced.mig = true;
  sliced.slices = {{"MIG-1", "1g.5gb", 0}, {"MIG-2", "", 0}};
  source.gpus.gpus = {whole, sliced};
  return source;
}

SlotSource without_gpus() {
  SlotSource source = machine();
  source.gpus = {};
  source.gpus.reason = "no NVIDIA driver: libnvidia-ml.so.1 is not there";
  return source;
}

std::vector<std::string> titles(const std::vector<Slot>& slots) {
  std::vector<std::string> made;
  for (const Slot& slot : slots) made.push_back(slot.title());
  return made;
}

std::vector<std::string> slots(const std::optional<std::string>& layout,
                               std::optional<std::int64_t> count = std::nullopt,
                               Device device = Device::automatic) {
  return titles(make_slots({layout, count, device}, machine()));
}

TEST(Slots, EqualSharesOfWholeCores) {
  const auto shares = [](std::optional<std::int64_t> count) {
    return titles(make_slots({.count = count, .device = Device::cpu}, machine()));
  };
  EXPECT_THAT(shares(1), ElementsAre("CPUs 0-7"));
  EXPECT_THAT(shares(2), ElementsAre("CPUs 0-1,4-5", "CPUs 2-3,6-7"));
  EXPECT_THAT(shares(3), ElementsAre("CPUs 0,4", "CPUs 1,5", "CPUs 2,6"));
  EXPECT_THAT(shares(std::nullopt), ElementsAre("CPUs 0,4", "CPUs 1,5", "CPUs 2,6", "CPUs 3,7"));
  SlotSource quota = without_gpus();
  quota.usable_cores = 2;
  EXPECT_EQ(make_slots({}, quota).size(), 2u);
}

TEST(Slots, DevicesShareTheCoresNearThem) {
  const auto made = make_slots({}, machine());
  EXPECT_THAT(titles(made),
              ElementsAre("GPU-a with CPUs 0-1,4-5", "MIG-1 with CPUs 2,6", "MIG-2 with CPUs 3,7"));
  EXPECT_EQ(made[0].places[0].kind, SlotPlace::Kind::gpu);
  EXPECT_EQ(made[1].places[0].kind, SlotPlace::Kind::mig);
  EXPECT_EQ(made[1].places[0].device_name, "1g.5gb");
  EXPECT_EQ(made[2].places[0].device_name, "A100")
      << "a slice that NVML does not name has its GPU's name";
  EXPECT_THAT(slots(std::nullopt, 2).size(), 2u);
}

TEST(Slots, MixedLayouts) {
  EXPECT_THAT(slots("0-1; 4"), ElementsAre("CPUs 0-1", "CPU 4"));
  EXPECT_THAT(slots("7,2"), ElementsAre("CPUs 2,7"));
  EXPECT_THAT(slots("gpu;mig"),
              ElementsAre("GPU-a with CPUs 0-1,4-5", "MIG-1 with CPUs 2,6", "MIG-2 with CPUs 3,7"));
  EXPECT_THAT(slots("MIG-2@3;0;GPU-a"),
              ElementsAre("MIG-2 with CPU 3", "CPU 0", "GPU-a with CPUs 1,5"));
  EXPECT_THAT(slots("mig;2;6"),
              ElementsAre("MIG-1 with CPU 3", "MIG-2 with CPU 7", "CPU 2", "CPU 6"))
      << "one free core for two slices: a thread each";
  EXPECT_THAT(slots("GPU-a;0;1;4;5"),
              ElementsAre("GPU-a with CPUs 2-3,6-7", "CPU 0", "CPU 1", "CPU 4", "CPU 5"))
      << "nothing is free near it";
}

TEST(Slots, WrongLayoutsSayWhatIsWrong) {
  const auto refusal = [](const std::string& layout, Device device = Device::automatic,
                          std::int64_t ranks = 1) {
    try {
      make_slots({.layout = layout, .device = device, .ranks = ranks}, machine());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("0;;1"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("0;1;"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("0-3;3"), HasSubstr("CPU 3 is in \"0-3\" and in \"3\""));
  EXPECT_THAT(refusal("0;0"), HasSubstr("CPU 0"));
  EXPECT_THAT(refusal("1,1"), HasSubstr("CPU 1"));
  EXPECT_THAT(refusal("0-9"), HasSubstr("CPU 8 of \"0-9\" is not among those"));
  EXPECT_THAT(refusal("0-9"), HasSubstr("(0-7)"));
  EXPECT_THAT(refusal("GPU-a;GPU-a"), HasSubstr("GPU-a is there twice"));
  EXPECT_THAT(refusal("mig;MIG-2"), HasSubstr("MIG-2 is there twice"));
  EXPECT_THAT(refusal("GPU-a@0;0"), HasSubstr("CPU 0"));
  for (const char* device : {"gpu", "mig", "GPU-a", "MIG-9"})
    EXPECT_THAT(refusal(device, Device::cpu), HasSubstr("--device is cpu"));
  EXPECT_THAT(refusal("GPU-a;0", Device::cuda), HasSubstr("--device cuda"));
  EXPECT_THAT(refusal("mig;0-2,4-7"), HasSubstr("2 GPUs or slices share 0 cores"));
  EXPECT_THAT(refusal("0+1;2+3", Device::cpu, 3), HasSubstr("has 2 places, and a job 3 ranks"));
  EXPECT_THAT(refusal("GPU-a;0", Device::automatic, 2), HasSubstr("a GPU or slice of its own"));
  EXPECT_THAT(refusal("0-1+1", Device::cpu, 2), HasSubstr("CPU 1"));
  EXPECT_THAT(refusal("gpu", Device::automatic, 2),
              HasSubstr("1 GPU or slice for jobs of 2 ranks"));
  EXPECT_THAT(refusal(":0"), HasSubstr("\"\" is no name of a host"));
  EXPECT_THAT(refusal("-x:0"), HasSubstr("is no name of a host"));
  EXPECT_THAT(refusal("a;b:0"), HasSubstr("neither"));
  EXPECT_THAT(refusal("$(id):0"), HasSubstr("is no name of a host"));
  EXPECT_THAT(refusal("elsewhere:0-3;elsewhere:3"), HasSubstr("CPU 3"));
  EXPECT_THAT(refusal("elsewhere:0;elsewhere.site.org:0"), HasSubstr("CPU 0"));
  EXPECT_THAT(refusal("elsewhere:GPU-z"), HasSubstr("elsewhere:GPU-z@0-7"));
  EXPECT_THAT(refusal("a1:0+a2:1+a2:2", Device::cpu, 3), HasSubstr("every host of a slot as many"));
}

TEST(Slots, OfSeveralRanks) {
  const auto of_ranks = [](const std::optional<std::string>& layout, std::int64_t ranks) {
    return titles(make_slots({.layout = layout, .ranks = ranks}, machine()));
  };
  EXPECT_THAT(of_ranks("0-3;4-7", 2), ElementsAre("CPUs 0-3", "CPUs 4-7"));
  EXPECT_THAT(of_ranks("0,4+1,5", 2), ElementsAre("CPUs 0,4 and CPUs 1,5"));
  EXPECT_THAT(of_ranks("MIG-1@2+MIG-2@3", 2), ElementsAre("MIG-1 with CPU 2 and MIG-2 with CPU 3"));
  EXPECT_THAT(of_ranks("mig", 2), ElementsAre("MIG-1 with CPUs 2,6 and MIG-2 with CPUs 3,7"));
  EXPECT_THAT(of_ranks(std::nullopt, 2),
              ElementsAre("GPU-a with CPUs 0-1,4-5 and MIG-1 with CPUs 2-3,6-7"))
      << "of three devices one stays idle";
  EXPECT_THAT(titles(make_slots({.device = Device::cpu, .ranks = 2}, machine())),
              ElementsAre("CPUs 0-1,4-5", "CPUs 2-3,6-7"));
  EXPECT_THROW(make_slots({.count = 2, .device = Device::cpu, .ranks = 3}, machine()), ConfigError);
  const auto crowded = make_slots({.layout = "0;1-2", .ranks = 2}, machine());
  EXPECT_TRUE(crowded[0].is_crowded(2));
  EXPECT_FALSE(crowded[1].is_crowded(2));
}

TEST(Slots, OnOtherHosts) {
  const auto made = make_slots(
      {.layout = "a1:0-99+a2:0-99;" + host_name() + ":1;a1:GPU-z@100+a2:MIG-z@100", .ranks = 2},
      machine());
  EXPECT_EQ(made[0].title(), "a1: CPUs 0-99 and a2: CPUs 0-99");
  EXPECT_EQ(made[0].hosts(), (std::vector<std::string>{"a1", "a2"}));
  EXPECT_FALSE(made[0].is_here());
  EXPECT_TRUE(made[1].is_here());
  EXPECT_EQ(made[2].places[1].kind, SlotPlace::Kind::mig);
}

TEST(Slots, WhatIsNoListOfCpus) {
  for (const char* text :
       {"a", "0-", "-1", "3-1", "0..3", "0 1", "1e3", "99999999999", "0-65536", ","})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  EXPECT_EQ(parse_cpu_list("0-2,5"), (std::vector{0, 1, 2, 5}));
}

TEST(Slots, MoreInstancesThanPlaces) {
  EXPECT_THROW(slots("0;1", 3), ConfigError);
  EXPECT_THROW(make_slots({.count = 5, .device = Device::cpu}, machine()), ConfigError);
  EXPECT_THROW(slots(std::nullopt, 4), ConfigError);
}

TEST(Slots, DevicesThatAreNotThereAreTheEnvironments) {
  const auto missing = [](const std::optional<std::string>& layout, const SlotSource& source,
                          Device device = Device::automatic) {
    try {
      make_slots({.layout = layout, .device = device}, source);
    } catch (const EnvironmentError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(missing("GPU-z", machine()), HasSubstr("visible: GPU-a, MIG-1, MIG-2"));
  EXPECT_THAT(missing("GPU-b", machine()), HasSubstr("MIG mode"));
  EXPECT_THAT(missing("MIG-1", without_gpus()), HasSubstr("libnvidia-ml"));
  EXPECT_THAT(missing("gpu", without_gpus()), HasSubstr("libnvidia-ml"));
  EXPECT_THAT(missing(std::nullopt, without_gpus(), Device::cuda), HasSubstr("libnvidia-ml"));
  SlotSource whole = machine();
  whole.gpus.gpus.resize(1);
  EXPECT_THAT(missing("mig", whole), HasSubstr("no visible GPU is in MIG mode"));
}

TEST(Slots, OfThisMachineAreWithinItsMask) {
  const auto made = make_slots({.device = Device::cpu}, slot_source(Device::cpu));
  const std::vector<int> mask = achieved_affinity().cpus;
  ASSERT_FALSE(made.empty());
  for (const Slot& slot : made)
    for (const int cpu : slot.places.at(0).cpus) EXPECT_THAT(mask, ::testing::Contains(cpu));
}

}  // namespace
}  // namespace scalemark::slots_test
