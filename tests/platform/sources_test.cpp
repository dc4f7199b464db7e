// Readers of /proc and /sys on made trees: cgroups, virtualisation, CPU flags, interfaces.
#include "platform/sources.hpp"

#include <gtest/gtest.h>

#include "platform/tree.hpp"

namespace scalemark::sources_test {
namespace {
using test::Tree;

TEST(LineValue, WholeKeysOnly) {
  const std::string text = "VmHWMx: 1 kB\nVmHWM:\t  12 kB\nmodel name\t: Foo 9\nempty:\n";
  EXPECT_EQ(line_value(text, "VmHWM"), "12 kB");
  EXPECT_EQ(line_value(text, "model name"), "Foo 9");
  EXPECT_EQ(line_value(text, "empty"), "");
  EXPECT_FALSE(line_value(text, "absent"));
}

TEST(ToNumber, RefusesHalfNumbers) {
  EXPECT_EQ(to_number(" 1.5\n"), 1.5);
  for (const char* text : {"", "max", "1.5x", "0x"}) EXPECT_FALSE(to_number(text)) << text;
}

TEST(Cgroup, NothingThere) {
  Tree tree;
  const Cgroup cgroup = read_cgroup(tree.root());
  EXPECT_EQ(cgroup.version, 0);
  EXPECT_FALSE(cgroup.quota_cpus);
  EXPECT_FALSE(cgroup.throttled_seconds);
}

TEST(Cgroup, Version2TightestOfTheAncestors) {
  Tree tree;
  tree.file("proc/self/cgroup", "0::/pod/job\n")
      .file("sys/fs/cgroup/pod/cpu.max", "150000 100000")
      .file("sys/fs/cgroup/pod/job/cpu.max", "max 100000")
      .file("sys/fs/cgroup/pod/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500000\n")
      .file("sys/fs/cgroup/pod/job/cpu.stat", "throttled_usec 0\n");
  const Cgroup cgroup = read_cgroup(tree.root());
  EXPECT_EQ(cgroup.version, 2);
  EXPECT_EQ(cgroup.quota_cpus, 1.5);
  EXPECT_EQ(cgroup.throttled_seconds, 2.5);
}

TEST(Cgroup, Version1InsideAContainerWhereThePathIsTheHosts) {
  Tree tree;
  tree.file("proc/self/cgroup", "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 5\nthrottled_time 1500000000\n");
  const Cgroup cgroup = read_cgroup(tree.root());
  EXPECT_EQ(cgroup.version, 1);
  EXPECT_EQ(cgroup.quota_cpus, 2.0);
  EXPECT_EQ(cgroup.throttled_seconds, 1.5);
}

TEST(Cgroup, Version1WithoutAQuota) {
  Tree tree;
  tree.file("proc/self/cgroup", "4:cpu:/\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  const Cgroup cgroup = read_cgroup(tree.root());
  EXPECT_EQ(cgroup.version, 1);
  EXPECT_FALSE(cgroup.quota_cpus);
}

TEST(Cgroup, CpusetIsNotCpu) {
  Tree tree;
  tree.file("proc/self/cgroup", "4:cpuset:/x\n").file("sys/fs/cgroup/cpuset/x/cpus", "0");
  EXPECT_EQ(read_cgroup(tree.root()).version, 0);
}

constexpr char kPlainCpu[] = "processor\t: 0\nflags\t\t: fpu sse2 avx512f\n";
constexpr char kGuestCpu[] = "processor\t: 0\nflags\t\t: fpu sse2 hypervisor avx512f\n";

TEST(Virtualisation, BareMetal) {
  Tree tree;
  tree.file("proc/cpuinfo", kPlainCpu).file("sys/class/dmi/id/sys_vendor", "Dell Inc.");
  const auto found = read_virtualisation(tree.root());
  EXPECT_EQ(found.kind, "bare metal");
  EXPECT_FALSE(found.hypervisor);
}

TEST(Virtualisation, VirtualByDmiOrByFlag) {
  Tree dmi;
  dmi.file("proc/cpuinfo", kGuestCpu).file("sys/class/dmi/id/sys_vendor", "QEMU");
  EXPECT_EQ(read_virtualisation(dmi.root()).kind, "virtual");
  EXPECT_EQ(read_virtualisation(dmi.root()).hypervisor, "QEMU/KVM");
  Tree flag;
  flag.file("proc/cpuinfo", kGuestCpu);
  EXPECT_EQ(read_virtualisation(flag.root()).kind, "virtual");
  EXPECT_EQ(read_virtualisation(flag.root()).hypervisor, "unknown");
}

TEST(Virtualisation, BareMetalInstanceOfACloud) {
  Tree tree;
  tree.file("proc/cpuinfo", kPlainCpu).file("sys/class/dmi/id/sys_vendor", "Amazon EC2");
  EXPECT_EQ(read_virtualisation(tree.root()).kind, "bare metal");
}

TEST(Virtualisation, ContainersByAnyHint) {
  for (const auto& [path, text] : {std::pair{".dockerenv", ""},
                                   {"run/.containerenv", ""},
                                   {"run/systemd/container", "podman"},
                                   {"proc/1/cgroup", "1:cpu:/kubepods/burstable/pod1"}}) {
    Tree tree;
    tree.file("proc/cpuinfo", kGuestCpu).file(path, text);
    const auto found = read_virtualisation(tree.root());
    EXPECT_EQ(found.kind, "container") << path;
    EXPECT_EQ(found.hypervisor, "unknown") << path;  // what is below the container is said too
  }
}

TEST(Virtualisation, UnknownWithoutProc) { EXPECT_FALSE(read_virtualisation(Tree().root()).kind); }

TEST(CpuInfo, NativePrecisions) {
  EXPECT_FALSE(cpuinfo_has_native("flags\t: fpu avx512f", "bf16"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: fpu avx512_bf16", "bf16"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: amx_bf16 amx_tile", "bf16"));
  EXPECT_TRUE(cpuinfo_has_native("Features\t: fp asimd bf16", "bf16"));
  EXPECT_FALSE(cpuinfo_has_native("Features\t: fp asimd i8mm", "bf16"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: avx512_fp16", "fp16"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: avx512f avx512_vnni", "int8"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: avx2 avx_vnni", "int8"));
  EXPECT_TRUE(cpuinfo_has_native("flags\t: amx_int8 amx_tile", "int8"));
  EXPECT_FALSE(cpuinfo_has_native("flags\t: avx2 avx512f avx512_bf16", "int8"));
  EXPECT_TRUE(cpuinfo_has_native("", "fp32"));
  EXPECT_FALSE(cpuinfo_has_native("flags\t: avx512_bf16", "tf32"));
  EXPECT_FALSE(cpuinfo_has_native("", "bf16"));
}

TEST(Nics, StateSpeedDriverAndCounters) {
  Tree tree;
  tree.file("sys/class/net/lo/operstate", "unknown")
      .file("sys/class/net/veth1/operstate", "up")
      .file("sys/class/net/veth1/speed", "10000")
      .file("sys/class/net/eth0/operstate", "down")
      .file("sys/class/net/eth0/speed", "-1")
      .file("sys/class/net/eth0/statistics/rx_bytes", "10")
      .file("sys/class/net/eth0/statistics/tx_bytes", "18446744073709")
      .file("sys/class/net/eth0/statistics/rx_errors", "1")
      .file("sys/class/net/eth0/statistics/tx_dropped", "2")
      .file("sys/bus/pci/drivers/mlx5_core/x", "")
      .file("sys/class/net/eth0/device/vendor", "0x15b3")
      .file("sys/class/net/bonding_masters", "");
  std::filesystem::create_directory_symlink(tree.root() / "sys/bus/pci/drivers/mlx5_core",
                                            tree.root() / "sys/class/net/eth0/device/driver");
  const std::vector<Nic> nics = read_nics(tree.root());
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(nics[0].name, "eth0");
  EXPECT_EQ(nics[0].state, "down");
  EXPECT_FALSE(nics[0].speed_mbps);
  EXPECT_EQ(nics[0].driver, "mlx5_core");
  EXPECT_TRUE(nics[0].physical);
  EXPECT_EQ(nics[0].tx_bytes, 18446744073709U);
  EXPECT_EQ(nics[0].errors, 3U);
  EXPECT_EQ(nics[1].speed_mbps, 10000);
  EXPECT_FALSE(nics[1].physical);
  EXPECT_FALSE(nics[1].driver);
}

TEST(Nics, NoSysfs) { EXPECT_TRUE(read_nics(Tree().root()).empty()); }

TEST(ProcStat, BusyIsUserNiceAndSystemAndStealTheEighthField) {
  const auto found = cpu_seconds("cpu  100 30 70 700 50 25 15 10 999 999\ncpu0 1 1\n", 100);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->busy, 2.0);
  EXPECT_DOUBLE_EQ(found->steal, 0.10);
  EXPECT_DOUBLE_EQ(found->total, 10.0);  // guest time is already in user time
  EXPECT_FALSE(cpu_seconds("cpu 1 2 3\n", 100));
  EXPECT_FALSE(cpu_seconds("", 100));
}

TEST(VisibleGpus, IndicesUuidsAndTheFirstInvalidEntry) {
  std::vector<GpuInfo> all(3);
  for (int i = 0; i < 3; ++i) {
    all[i].index = i;
    all[i].uuid = "GPU-" + std::string(1, static_cast<char>('a' + i)) + "0-1234";
  }
  const auto indices = [&](std::optional<std::string> variable) {
    std::vector<int> found;
    for (const GpuInfo& gpu : select_visible(all, variable)) found.push_back(gpu.index);
    return found;
  };
  EXPECT_EQ(indices(std::nullopt), (std::vector{0, 1, 2}));
  EXPECT_EQ(indices(""), std::vector<int>{});
  EXPECT_EQ(indices("2,0"), (std::vector{2, 0}));
  EXPECT_EQ(indices("GPU-b0"), (std::vector{1}));
  EXPECT_EQ(indices("1,-1,2"), (std::vector{1}));
  EXPECT_EQ(indices("0,7,1"), (std::vector{0}));
  EXPECT_EQ(indices("GPU-zz"), std::vector<int>{});
}

}  // namespace
}  // namespace scalemark::sources_test
