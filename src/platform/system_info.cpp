// The `system` object of a record, key by key; what cannot be found out is null with a reason.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>

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

/// The reason for `keys` that are null of any device in a list.
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

}  // namespace scalemark
