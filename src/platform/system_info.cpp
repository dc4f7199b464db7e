// Fills the `system` object of a record key by key. What cannot be determined is null with a
// reason.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "json.hpp"
#include "platform/container.hpp"
#include "platform/sources.hpp"
#include "platform/topology.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

template <typename T>
void put(SystemInfo& info, const std::string& key, const std::optional<T>& value,
         const std::string& reason) {
  if (value) {
    info.json[key] = *value;
  } else {
    info.json[key] = nullptr;
    info.unavailable["system." + key] = reason;
  }
}

/// Sets the reason for those of `keys` that are null for any device in a list.
void explain_list(SystemInfo& info, const std::string& list, const std::vector<std::string>& keys,
                  const std::string& reason) {
  for (const std::string& key : keys)
    if (std::ranges::any_of(info.json[list],
                            [&](const Json& device) { return device[key].is_null(); }))
      info.unavailable["system." + list + "." + key] = reason;
}

void add_software(SystemInfo& info) {
  info.json["host"] = host_name();
  utsname names{};
  const bool known = uname(&names) == 0;
  put(info, "kernel",
      known ? std::optional(std::string(names.sysname) + " " + names.release + " " + names.machine)
            : std::nullopt,
      "uname failed");
  auto name = line_value(read_text("/etc/os-release").value_or(""), "PRETTY_NAME");
  if (name) std::erase(*name, '"');
  put(info, "distribution", name, "no /etc/os-release");
  const Virtualisation virtualisation = read_virtualisation();
  put(info, "virtualisation", virtualisation.kind, "/proc/cpuinfo is not readable");
  add_container(info, process_environment(), virtualisation.kind);
  put(info, "hypervisor", virtualisation.hypervisor, "neither the CPU nor the firmware names one");
}

std::optional<std::string> dmi(std::initializer_list<const char*> fields) {
  std::string joined;
  for (const char* field : fields) {
    const auto text = read_text(fs::path("/sys/class/dmi/id") / field);
    if (text && !text->empty()) joined += (joined.empty() ? "" : " ") + *text;
  }
  if (joined.empty()) return std::nullopt;
  return joined;
}

std::optional<std::int64_t> count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int found = topology != nullptr ? hwloc_get_nbobjs_by_type(topology, type) : 0;
  if (found <= 0) return std::nullopt;
  return found;
}

void add_hardware(SystemInfo& info) {
  put(info, "machine", dmi({"sys_vendor", "product_name"}), "no DMI data in /sys/class/dmi/id");
  put(info, "bios", dmi({"bios_vendor", "bios_version", "bios_date"}),
      "no DMI data in /sys/class/dmi/id");
  put(info, "cpu_model", cpuinfo_model(read_text("/proc/cpuinfo").value_or("")),
      "/proc/cpuinfo names none");
  const Topology topology = load_topology();
  const auto cores = count(topology.get(), HWLOC_OBJ_CORE),
             threads = count(topology.get(), HWLOC_OBJ_PU);
  put(info, "sockets", count(topology.get(), HWLOC_OBJ_PACKAGE), "hwloc sees no packages");
  put(info, "cores", cores, "hwloc sees no cores");
  put(info, "threads", threads, "hwloc sees no processing units");
  put(info, "smt", cores && threads ? std::optional(*threads > *cores) : std::nullopt,
      "hwloc sees no cores");
  put(info, "numa_nodes", count(topology.get(), HWLOC_OBJ_NUMANODE), "hwloc sees no NUMA nodes");
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  put(info, "memory_bytes", pages > 0 ? std::optional(std::int64_t{pages} * page) : std::nullopt,
      "sysconf does not know the number of pages");
  put(info, "cpu_quota", read_cgroup().quota_cpus, "no CPU quota is set for this cgroup");
  put(info, "governor", read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
      "no cpufreq for CPU 0: the host or the firmware controls the clock");
}

void add_gpus(SystemInfo& info) {
  const GpuList list = visible_gpus();
  put(info, "gpu_driver",
      list.driver_version.empty() ? std::nullopt : std::optional(list.driver_version),
      list.reason.empty() ? "NVML does not tell" : list.reason);
  info.json["gpus"] = Json::array();
  for (const GpuInfo& gpu : list.gpus)
    info.json["gpus"].push_back(
        {{"index", gpu.index},
         {"name", null_if_empty(gpu.name)},
         {"uuid", gpu.uuid},
         {"pci_bus_id", null_if_empty(gpu.pci_bus_id)},
         {"memory_bytes", gpu.memory_bytes > 0 ? Json(gpu.memory_bytes) : Json(nullptr)},
         {"near_cpus", format_cpu_list(gpu.near_cpus)}});
  explain_list(info, "gpus", {"name", "pci_bus_id", "memory_bytes"}, "NVML does not tell");
  for (const char* key : {"cuda", "cudnn", "nccl", "mpi", "openmp", "denormals"})
    put<std::string>(info, key, std::nullopt, "not used by this program, or not reported");
}

void add_network(SystemInfo& info) {
  info.json["nics"] = Json::array();
  for (const Nic& nic : read_nics()) {
    info.json["nics"].push_back({{"name", nic.name},
                                 {"state", or_null(nic.state)},
                                 {"speed_mbps", or_null(nic.speed_mbps)},
                                 {"driver", or_null(nic.driver)},
                                 {"firmware", or_null(nic_firmware(nic.name))}});
  }
  info.json["rdma"] = Json::array();
  std::error_code error;
  for (fs::directory_iterator entry("/sys/class/infiniband", error), end; !error && entry != end;
       entry.increment(error))
    info.json["rdma"].push_back({{"name", entry->path().filename()},
                                 {"rate", or_null(read_text(entry->path() / "ports/1/rate"))},
                                 {"firmware", or_null(read_text(entry->path() / "fw_ver"))}});
  const std::string reason = "the interface or its driver does not tell";
  explain_list(info, "nics", {"state", "speed_mbps", "driver", "firmware"}, reason);
  explain_list(info, "rdma", {"rate", "firmware"}, reason);
}
}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

SystemInfo system_info() {
  SystemInfo info;
  info.json = Json::object();
  add_software(info);
  add_hardware(info);
  add_gpus(info);
  add_network(info);
  return info;
}

void set_system(SystemInfo& info, const std::string& key, const std::string& value) {
  if (value.empty()) return;
  info.json[key] = value;
  info.unavailable.erase("system." + key);
}

// Distinguishes virtual machines, containers and bare metal.

namespace {
namespace fs = std::filesystem;

bool contains(const std::optional<std::string>& text, std::string_view word) {
  return text && text->find(word) != std::string::npos;
}

bool in_container(const fs::path& root) {
  std::error_code error;
  if (fs::exists(root / ".dockerenv", error) || fs::exists(root / "run/.containerenv", error) ||
      fs::exists(root / "run/systemd/container", error) ||
      fs::exists(root / "singularity", error) || fs::exists(root / ".singularity.d", error))
    return true;
  const auto init_group = read_text(root / "proc/1/cgroup");
  for (const char* hint : {"docker", "kubepods", "containerd", "libpod", "/lxc", "/garden"})
    if (contains(init_group, hint)) return true;
  return false;
}

std::optional<std::string> hypervisor_of(const fs::path& root) {
  // These are product and vendor strings of DMI, as systemd-detect-virt knows them.
  struct Sign {
    std::string_view word, name;
  };
  constexpr std::array signs{Sign{"KVM", "KVM"},
                             Sign{"QEMU", "QEMU/KVM"},
                             Sign{"VMware", "VMware"},
                             Sign{"VirtualBox", "VirtualBox"},
                             Sign{"innotek", "VirtualBox"},
                             Sign{"Xen", "Xen"},
                             Sign{"OpenStack", "KVM"},
                             Sign{"Amazon EC2", "Amazon EC2"},
                             Sign{"Google Compute Engine", "Google Compute Engine"},
                             Sign{"BHYVE", "bhyve"},
                             Sign{"Virtual Machine", "Hyper-V"},
                             Sign{"Parallels", "Parallels"}};
  const bool flag = contains(read_text(root / "proc/cpuinfo"), " hypervisor");
  if (const auto type = read_text(root / "sys/hypervisor/type"); type && !type->empty())
    return type;
  for (const char* field : {"product_name", "sys_vendor", "board_vendor", "bios_vendor"}) {
    const auto text = read_text(root / "sys/class/dmi/id" / field);
    for (const Sign& sign : signs) {
      if (!contains(text, sign.word)) continue;
      // EC2's bare-metal instances have the same vendor; only the CPU flag distinguishes them.
      if (sign.word == "Amazon EC2" && !flag) continue;
      return std::string(sign.name);
    }
  }
  if (flag) return "unknown";
  return std::nullopt;
}
}  // namespace

Virtualisation read_virtualisation(const fs::path& root) {
  Virtualisation found;
  found.hypervisor = hypervisor_of(root);
  if (in_container(root)) {
    found.kind = "container";
  } else if (found.hypervisor) {
    found.kind = "virtual";
  } else if (read_text(root / "proc/cpuinfo")) {
    found.kind = "bare metal";
  }
  return found;
}

// Reads network interfaces: state, speed, driver, firmware and counters.

namespace {
namespace fs = std::filesystem;

std::uint64_t counter(const fs::path& nic, const char* name) {
  const auto text = read_text(nic / "statistics" / name);
  const auto value = text ? to_number(*text) : std::nullopt;
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

Nic read_nic(const fs::path& folder) {
  Nic nic;
  nic.name = folder.filename();
  nic.state = read_text(folder / "operstate");
  nic.over_infiniband = read_text(folder / "type") == "32";  // ARPHRD_INFINIBAND
  std::error_code error;
  nic.physical = fs::exists(folder / "device", error);
  const fs::path driver = fs::read_symlink(folder / "device/driver", error);
  if (!error) nic.driver = driver.filename();
  const auto speed = read_text(folder / "speed");
  const auto mbps = speed ? to_number(*speed) : std::nullopt;
  if (mbps && *mbps > 0) nic.speed_mbps = static_cast<std::int64_t>(*mbps);  // -1: link down
  nic.rx_bytes = counter(folder, "rx_bytes");
  nic.tx_bytes = counter(folder, "tx_bytes");
  for (const char* name : {"rx_errors", "tx_errors", "rx_dropped", "tx_dropped"})
    nic.errors += counter(folder, name);
  return nic;
}
}  // namespace

std::vector<Nic> read_nics(const fs::path& root) {
  std::vector<Nic> nics;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/class/net", error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path folder = entry->path();
    std::error_code ignored;
    if (folder.filename() == "lo" || !fs::is_directory(folder, ignored)) continue;
    nics.push_back(read_nic(folder));
  }
  std::ranges::sort(nics, {}, &Nic::name);
  return nics;
}

std::optional<std::string> nic_firmware(const std::string& name) {
  if (name.size() >= IFNAMSIZ) return std::nullopt;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  const int failed = ioctl(fd, SIOCETHTOOL, &request);
  close(fd);
  if (failed != 0) return std::nullopt;
  const std::string version(info.fw_version, strnlen(info.fw_version, sizeof info.fw_version));
  if (version.empty() || version == "N/A") return std::nullopt;
  return version;
}

}  // namespace scalemark
