// NVIDIA GPUs through NVML, which comes with the driver and is therefore loaded at run time.
// Prototypes: NVML API reference, versions that every driver since CUDA 11 exports.
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <sstream>

#include "platform/energy.hpp"
#include "platform/sources.hpp"
#include "platform/topology.hpp"

namespace scalemark {
namespace {
using Device = struct nvmlDevice_st*;
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};

struct Nvml {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
  int (*handle_of_uuid)(const char*, Device*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;

  Nvml() : library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Nvml() {
    if (library != nullptr) dlclose(library);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  template <typename F>
  bool find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    return function != nullptr;
  }
  bool find_all() {
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(error_string, "nvmlErrorString") &&
           find(driver_version, "nvmlSystemGetDriverVersion") &&
           find(count, "nvmlDeviceGetCount_v2") && find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
           find(name, "nvmlDeviceGetName") && find(uuid, "nvmlDeviceGetUUID") &&
           find(pci, "nvmlDeviceGetPciInfo_v3") && find(memory, "nvmlDeviceGetMemoryInfo") &&
           find(handle_of_uuid, "nvmlDeviceGetHandleByUUID") &&
           find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  }
};

/// NVML writes the domain with eight digits, the kernel and hwloc with four.
std::string kernel_bus_id(const std::string& id) {
  return id.size() == 16 && id.starts_with("0000") ? id.substr(4) : id;
}

GpuInfo describe(const Nvml& nvml, unsigned index, hwloc_topology_t topology) {
  GpuInfo gpu;
  gpu.index = static_cast<int>(index);
  Device device = nullptr;
  if (nvml.handle(index, &device) != 0) return gpu;
  char text[128] = {};
  if (nvml.name(device, text, sizeof text) == 0) gpu.name = text;
  if (nvml.uuid(device, text, sizeof text) == 0) gpu.uuid = text;
  PciInfo pci{};
  if (nvml.pci(device, &pci) == 0) gpu.pci_bus_id = kernel_bus_id(pci.bus_id);
  MemoryInfo memory{};
  if (nvml.memory(device, &memory) == 0) gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  if (topology != nullptr && !gpu.pci_bus_id.empty())
    gpu.near_cpus = cpus_near_pci(topology, gpu.pci_bus_id);
  return gpu;
}

void list_gpus(const Nvml& nvml, GpuList& list) {
  char version[96] = {};
  if (nvml.driver_version(version, sizeof version) == 0) list.driver_version = version;
  unsigned count = 0;
  if (const int error = nvml.count(&count); error != 0) {
    list.reason = std::string("NVML cannot count GPUs: ") + nvml.error_string(error);
    return;
  }
  const Topology topology = count > 0 ? load_topology(true) : nullptr;
  for (unsigned index = 0; index < count; ++index)
    list.of_machine.push_back(describe(nvml, index, topology.get()));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  list.gpus =
      select_visible(list.of_machine, visible ? std::optional<std::string>(visible) : std::nullopt);
  if (!list.gpus.empty()) return;
  list.reason = count == 0 ? "the NVIDIA driver is loaded but shows no GPU"
                           : "CUDA_VISIBLE_DEVICES=\"" + std::string(visible ? visible : "") +
                                 "\" names none of the " + std::to_string(count) + " GPUs";
}

const GpuInfo* find_gpu(const std::vector<GpuInfo>& all, const std::string& word) {
  const auto number = to_number(word);
  for (const GpuInfo& gpu : all) {
    if (number ? gpu.index == *number : (!gpu.uuid.empty() && gpu.uuid.starts_with(word)))
      return &gpu;
  }
  return nullptr;
}
}  // namespace

std::vector<GpuInfo> select_visible(const std::vector<GpuInfo>& all,
                                    const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return all;
  std::vector<GpuInfo> visible;
  std::istringstream words(*cuda_visible_devices);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    const GpuInfo* gpu = word.empty() ? nullptr : find_gpu(all, word);
    if (gpu == nullptr) break;
    visible.push_back(*gpu);
  }
  return visible;
}

std::optional<double> gpu_joules(const std::string& uuid) {
  Nvml nvml;
  if (nvml.library == nullptr || !nvml.find_all() || nvml.init() != 0) return std::nullopt;
  Device device = nullptr;
  unsigned long long millijoules = 0;
  const bool read =
      nvml.handle_of_uuid(uuid.c_str(), &device) == 0 && nvml.energy(device, &millijoules) == 0;
  nvml.shutdown();
  return read ? std::optional(1e-3 * static_cast<double>(millijoules)) : std::nullopt;
}

GpuList visible_gpus() {
  GpuList list;
  Nvml nvml;
  if (nvml.library == nullptr) {
    list.reason = "no NVIDIA driver: libnvidia-ml.so.1 is not there";
  } else if (!nvml.find_all()) {
    list.reason = "the NVIDIA driver is too old: its libnvidia-ml.so.1 lacks functions of CUDA 11";
  } else if (const int error = nvml.init(); error != 0) {
    list.reason = std::string("NVML does not start: ") + nvml.error_string(error);
  } else {
    list_gpus(nvml, list);
    nvml.shutdown();
  }
  return list;
}

}  // namespace scalemark
