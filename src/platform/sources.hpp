// Declares how platform.hpp reads /proc, /sys and NVML. Every function takes the text or the root
// folder that it reads, so that tests can pass prepared trees. A missing or unreadable file gives
// an empty result, never an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/platform.hpp"

namespace scalemark {

/// Reads a whole file, without trailing white space and at most 1 MiB. Returns nullopt where it
/// can't be read.
std::optional<std::string> read_text(const std::filesystem::path& path);
/// Returns the trimmed rest of the first line that starts with `key`. Lines have the form "key
/// value" or "key: value".
std::optional<std::string> line_value(std::string_view text, std::string_view key);
std::optional<double> to_number(std::string_view text);

/// CPU limits of this process's cgroup, version 1 or 2: the tightest of the group and its
/// ancestors.
struct Cgroup {
  int version = 0;                   ///< 0: none found
  std::optional<double> quota_cpus;  ///< CPUs that the quota pays for; nullopt without a quota
  std::optional<double> throttled_seconds;  ///< since the group was made
};
/// Reads `root`/proc/self/cgroup and `root`/sys/fs/cgroup.
Cgroup read_cgroup(const std::filesystem::path& root = "/");

/// Returns how many bytes this process's memory cgroup, version 1 or 2, still lets it take: the
/// least of the group and its ancestors. Page cache that the kernel would drop counts as free.
/// Returns nullopt without a limit.
std::optional<std::int64_t> cgroup_memory_left(const std::filesystem::path& root = "/");
/// Returns the lowest memory limit of this process's cgroup and its ancestors, or nullopt without a
/// limit.
std::optional<std::int64_t> cgroup_memory_limit(const std::filesystem::path& root = "/");

/// The kind of machine: "virtual", "bare metal" or "container" (also where the host of the
/// container is virtual).
struct Virtualisation {
  std::optional<std::string> kind;
  std::optional<std::string>
      hypervisor;  ///< "KVM", "VMware", ...; "unknown" where only the CPU flag says so
};
/// Reads proc/cpuinfo, sys/class/dmi/id, sys/hypervisor/type, .dockerenv, run/.containerenv,
/// run/systemd/container and proc/1/cgroup below `root`.
Virtualisation read_virtualisation(const std::filesystem::path& root = "/");

/// Returns true where the flags of /proc/cpuinfo (x86 "flags", ARM "Features") include native
/// instructions for the precision.
bool cpuinfo_has_native(std::string_view cpuinfo, std::string_view precision);
std::optional<std::string> cpuinfo_model(std::string_view cpuinfo);

/// A network interface.
struct Nic {
  std::string name;
  std::optional<std::string> state, driver;
  std::optional<std::int64_t> speed_mbps;
  bool over_infiniband = false;  ///< IP over a port, which counts its bytes too
  bool physical =
      false;  ///< has a device below it (also virtio); false for bridges, veth pairs and the like
  std::uint64_t rx_bytes = 0, tx_bytes = 0;
  std::uint64_t errors = 0;  ///< rx and tx errors and drops
};
/// Returns all interfaces below `root`/sys/class/net except loopback, sorted by name.
std::vector<Nic> read_nics(const std::filesystem::path& root = "/");
/// Returns the firmware version from the kernel's ethtool interface, or nullopt where the driver
/// reports none.
std::optional<std::string> nic_firmware(const std::string& name);

/// Seconds of all CPUs together, from the "cpu " line of /proc/stat.
struct CpuSeconds {
  double busy = 0;  ///< time of processes and of the kernel for them, without interrupts and steal
  double steal = 0;
  double total = 0;  ///< time of all states
};
std::optional<CpuSeconds> cpu_seconds(std::string_view proc_stat, double ticks_per_second);

/// Selects and orders the GPUs that NVML lists by CUDA_VISIBLE_DEVICES. Its entries are indices or
/// UUIDs of GPUs or MIG slices, possibly shortened; the list ends at the first entry that matches
/// neither, as in CUDA itself. A GPU that is named by slices has only these. nullopt means that the
/// variable is not set.
std::vector<GpuInfo> select_visible(const std::vector<GpuInfo>& all,
                                    const std::optional<std::string>& cuda_visible_devices);

}  // namespace scalemark
