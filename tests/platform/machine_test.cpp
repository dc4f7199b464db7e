// The room on the machine that runs the tests: whatever it is, the answers are complete and
// consistent.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "platform/sources.hpp"
#include "platform/tree.hpp"

namespace scalemark::machine_test {
namespace {
using test::Tree;

TEST(CpuList, KernelFormat) {
  EXPECT_EQ(format_cpu_list({}), "");
  EXPECT_EQ(format_cpu_list({3}), "3");
  EXPECT_EQ(format_cpu_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_cpu_list({0, 2, 3, 5}), "0,2-3,5");
}

TEST(Affinity, FollowsTheMask) {
  const Affinity whole = achieved_affinity();
  ASSERT_FALSE(whole.cpus.empty());
  EXPECT_TRUE(std::ranges::is_sorted(whole.cpus));
  EXPECT_GE(whole.usable, 1);
  EXPECT_LE(whole.usable, static_cast<int>(whole.cpus.size()));
  EXPECT_GE(physical_cores(), 1);
  EXPECT_LE(physical_cores(), static_cast<int>(whole.cpus.size()));

  std::thread([&] {  // the mask is the thread's own: the test process keeps its
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(whole.cpus.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const Affinity narrowed = achieved_affinity();
    EXPECT_EQ(narrowed.cpus, std::vector{whole.cpus.back()});
    EXPECT_EQ(narrowed.usable, 1);
    EXPECT_EQ(physical_cores(), 1);
  })
      .join();
}

TEST(SystemInfo, EveryNullHasAReason) {
  const SystemInfo info = system_info();
  EXPECT_EQ(info.json.at("host"), host_name());
  EXPECT_FALSE(host_name().empty());
  for (const auto& [key, value] : info.json.items())
    EXPECT_EQ(value.is_null(), info.unavailable.count("system." + key) == 1) << key;
  EXPECT_GE(info.json.at("threads").get<int>(), static_cast<int>(achieved_affinity().cpus.size()));
  EXPECT_GT(info.json.at("memory_bytes").get<std::int64_t>(), 1 << 20);
}

TEST(SystemInfo, TheEngineFillsWhatOnlyItKnows) {
  SystemInfo info = system_info();
  ASSERT_TRUE(info.json.at("mpi").is_null());
  set_system(info, "mpi", "");
  EXPECT_TRUE(info.json.at("mpi").is_null());
  set_system(info, "mpi", "Open MPI v4.1.4");
  EXPECT_EQ(info.json.at("mpi"), "Open MPI v4.1.4");
  EXPECT_EQ(info.unavailable.count("system.mpi"), 0U);
}

TEST(Gpus, EitherGpusOrAReason) {
  const GpuList list = visible_gpus();
  EXPECT_EQ(list.gpus.empty(), !list.reason.empty());
  for (const GpuInfo& gpu : list.gpus) {
    EXPECT_TRUE(gpu.uuid.starts_with("GPU-")) << gpu.uuid;
    EXPECT_GT(gpu.memory_bytes, 1 << 30);
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_FALSE(list.driver_version.empty());
  }
}

TEST(PeakMemory, GrowsWithUse) {
  reset_peak_rss();
  const std::int64_t before = peak_rss_bytes();
  ASSERT_GT(before, 0);
  constexpr std::size_t kBytes = 64 << 20;
  std::vector<char> block(kBytes);
  std::memset(block.data(), 1, block.size());
  // A few pages of the process may be reclaimed meanwhile.
  EXPECT_GE(peak_rss_bytes(), before + static_cast<std::int64_t>(kBytes) * 9 / 10);
  EXPECT_EQ(block[kBytes / 2], 1);
}

TEST(Noise, DifferencesOfMadeSnapshots) {
  NoiseSnapshot before, after;
  before.steal_seconds = 1;
  before.total_cpu_seconds = 100;
  after.steal_seconds = 3;
  after.total_cpu_seconds = 110;
  after.throttled_seconds = 5;  // unknown before: unknown
  after.load1 = 2.5;
  before.busy_cpu_seconds = 50;
  after.busy_cpu_seconds = 58.5;
  before.own_cpu_seconds = 1;
  after.own_cpu_seconds = 4;
  before.taken_at = 10;
  after.taken_at = 14;
  before.involuntary_switches = 10;
  after.involuntary_switches = 17;
  before.nic_bytes = {{"eth0", {0, 1000}}, {"gone", {0, 5}}, {"reset", {0, 500}}};
  after.nic_bytes = {{"eth0", {0, 4000}}, {"new", {0, 77}}, {"reset", {0, 100}}};
  before.nic_errors = {{"eth0", 1}};
  after.nic_errors = {{"eth0", 4}, {"new", 2}};
  const NoiseEvidence noise = noise_between(before, after);
  EXPECT_DOUBLE_EQ(noise.steal.value(), 0.2);
  EXPECT_FALSE(noise.throttled_seconds);
  EXPECT_EQ(noise.load1, 2.5);
  EXPECT_EQ(noise.context_switches, 7);
  EXPECT_EQ(noise.busy_cpu_seconds, 8.5);
  EXPECT_EQ(noise.own_cpu_seconds, 3);
  EXPECT_EQ(noise.seconds, 4);
  EXPECT_FALSE(noise.family_cpu_seconds);
  EXPECT_EQ(noise.nic_bytes, 3000U);
  EXPECT_EQ(noise.error_counters, (std::map<std::string, std::uint64_t>{{"eth0", 3}}));
}

/// Ethernet, RDMA beside it, and IP over InfiniBand, which the port counts too.
void links(Tree& tree, int ethernet, int words, int ip_over_ib, int retries) {
  const std::string net = "sys/class/net/", port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree.file(net + "eth0/device/x", "")
      .file(net + "eth0/type", "1\n")
      .file(net + "eth0/statistics/tx_bytes", std::to_string(ethernet))
      .file(net + "ib0/device/x", "")
      .file(net + "ib0/type", "32\n")
      .file(net + "ib0/statistics/tx_bytes", std::to_string(ip_over_ib))
      .file(port + "counters/port_xmit_data", std::to_string(words))
      .file(port + "counters/symbol_error", "5\n")
      .file(port + "hw_counters/out_of_sequence", std::to_string(retries));
}

TEST(Noise, CountsWhatPortsSendAndTheirErrorsOnce) {
  Tree tree;
  links(tree, 1000, 100, 70, 1);
  const NoiseSnapshot before = noise_snapshot({}, tree.root());
  links(tree, 1500, 350, 570, 4);
  const NoiseEvidence noise = noise_between(before, noise_snapshot({}, tree.root()));
  EXPECT_EQ(noise.link_bytes,
            (std::map<std::string, std::uint64_t>{{"eth0", 500}, {"mlx5_0/1", 4 * 250}}));
  EXPECT_EQ(noise.nic_bytes, 1500U);
  EXPECT_EQ(noise.error_counters,
            (std::map<std::string, std::uint64_t>{{"eth0", 0}, {"ib0", 0}, {"mlx5_0/1", 3}}));
}

TEST(Noise, NothingKnownIsEmpty) {
  const NoiseEvidence noise = noise_between({}, {});
  EXPECT_FALSE(noise.steal);
  EXPECT_FALSE(noise.nic_bytes);
  EXPECT_TRUE(noise.error_counters.empty());
}

TEST(Noise, StealIsAFractionAlsoWhereTheCountersDisagree) {
  NoiseSnapshot before, after;
  before.steal_seconds = before.total_cpu_seconds = 1;
  after.steal_seconds = 4;
  after.total_cpu_seconds = 3;
  EXPECT_EQ(noise_between(before, after).steal, 1.0);
  EXPECT_EQ(noise_between(after, before).steal, 0.0);
}

TEST(Noise, RealSnapshotsGoForward) {
  const NoiseSnapshot before = noise_snapshot();
  ASSERT_TRUE(before.steal_seconds && before.total_cpu_seconds);
  NoiseSnapshot after;
  for (int i = 0; i < 10'000; ++i) {
    usleep(1000);  // until the kernel has counted a tick
    after = noise_snapshot();
    if (after.total_cpu_seconds != before.total_cpu_seconds) break;
  }
  ASSERT_GT(after.total_cpu_seconds, before.total_cpu_seconds);
  EXPECT_GT(after.voluntary_switches, before.voluntary_switches);  // it slept
  const double steal = *after.steal_seconds - *before.steal_seconds;
  const double total = *after.total_cpu_seconds - *before.total_cpu_seconds;
  EXPECT_GE(steal, 0);
  EXPECT_LE(steal, total);
  const NoiseEvidence noise = noise_between(before, after);
  EXPECT_EQ(noise.steal, steal / total);
  EXPECT_EQ(noise.context_switches, after.involuntary_switches - before.involuntary_switches);
  EXPECT_GE(noise.context_switches, 0);
}

}  // namespace
}  // namespace scalemark::machine_test
