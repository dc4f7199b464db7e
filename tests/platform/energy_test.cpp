// Energy counters of a made tree: zones, wrapping, what can't be read.
#include "platform/energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "platform/tree.hpp"

namespace scalemark::energy_test {
namespace {
using test::Tree;
using testing::HasSubstr;

constexpr const char* kFolder = "sys/class/powercap/";

/// Moves a counter at once, as the kernel does.
void count(Tree& tree, const std::string& folder, long long microjoules) {
  const std::string counter = kFolder + folder + "/energy_uj";
  tree.file(counter + ".new", std::to_string(microjoules) + "\n");
  std::filesystem::rename(tree.root() / (counter + ".new"), tree.root() / counter);
}

void zone(Tree& tree, const std::string& folder, const std::string& name, long long microjoules) {
  tree.file(kFolder + folder + "/name", name + "\n")
      .file(kFolder + folder + "/max_energy_range_uj", "1000000000\n");
  count(tree, folder, microjoules);
}

/// Two sockets with their memory; "core" is part of its package, "psys" counts packages again.
void machine(Tree& tree, long long first, long long second, long long memory) {
  zone(tree, "intel-rapl:0", "package-0", first);
  zone(tree, "intel-rapl:1", "package-1", second);
  zone(tree, "intel-rapl:0:0", "core", 5 * first);
  zone(tree, "intel-rapl:0:1", "dram", memory);
  zone(tree, "intel-rapl:2", "psys", 9 * first);
}

TEST(Energy, SumsPackagesAndTheirMemory) {
  Tree tree;
  machine(tree, 1'000'000, 2'000'000, 500'000);
  EnergyMeter meter(true, "", tree.root());
  machine(tree, 4'000'000, 2'500'000, 600'000);
  const Energy energy = meter.stop();
  ASSERT_TRUE(energy.host_joules);
  EXPECT_NEAR(*energy.host_joules, 3 + 0.5 + 0.1, 1e-9);
  EXPECT_EQ(energy.reason, "");
  EXPECT_FALSE(energy.gpu_joules);
}

TEST(Energy, CountsOnWhereACounterStartsAgain) {
  Tree tree;
  machine(tree, 999'000'000, 0, 0);  // the range is 1000 J
  EnergyMeter meter(true, "", tree.root());
  machine(tree, 1'500'000, 0, 0);
  EXPECT_NEAR(*meter.stop().host_joules, 2.5, 1e-9);
}

TEST(Energy, ItsThreadSeesEveryRound) {
  Tree tree;
  machine(tree, 0, 0, 0);
  EnergyMeter meter(true, "", tree.root(), 0.001);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 1; i <= 5; ++i) {  // 600 J a time: three times round in all
    count(tree, "intel-rapl:0", 600'000'000LL * i % 1'000'000'000);
    while (meter.host_joules_so_far() < 600 * i - 1e-6 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NEAR(meter.stop().host_joules.value_or(0), 3000, 1e-6);
}

TEST(Energy, SaysWhyThereIsNone) {
  Tree tree;
  EXPECT_THAT(EnergyMeter(true, "", tree.root()).stop().reason, HasSubstr("no RAPL"));
  machine(tree, 1, 1, 1);
  std::filesystem::remove(tree.root() / kFolder / "intel-rapl:1/energy_uj");
  const Energy unreadable = EnergyMeter(true, "", tree.root()).stop();
  EXPECT_FALSE(unreadable.host_joules);
  EXPECT_THAT(unreadable.reason, HasSubstr("intel-rapl:1/energy_uj"));
  machine(tree, 1, 1, 1);
  EnergyMeter meter(true, "", tree.root());
  std::filesystem::remove_all(tree.root() / kFolder / "intel-rapl:1");
  const Energy lost = meter.stop();
  EXPECT_FALSE(lost.host_joules);
  EXPECT_THAT(lost.reason, HasSubstr("went away"));
}

TEST(Energy, OnlyWhoIsAskedCountsTheHost) {
  Tree tree;
  machine(tree, 1, 1, 1);
  const Energy energy = EnergyMeter(false, "", tree.root()).stop();
  EXPECT_FALSE(energy.host_joules);
  EXPECT_EQ(energy.reason, "");
}

}  // namespace
}  // namespace scalemark::energy_test
