// NVIDIA GPUs through NVML.
#include <cstdlib>
#include <sstream>

#include "platform/energy.hpp"
#include "platform/nvml.hpp"
#include "platform/sources.hpp"
#include "platform/topology.hpp"

namespace scalemark {
namespace {

GpuInfo describe(const Nvml& nvml, unsigned index, hwloc_topology_t topology) {
  GpuInfo gpu;
  gpu.index = static_cast<int>(index);
  NvmlDevice device = nullptr;
  if (nvml.handle(index, &device) != 0) return gpu;
  char text[128] = {};
  if (nvml.name(device, text, sizeof text) == 0) gpu.name = text;
  if (nvml.uuid(device, text, sizeof text) == 0) gpu.uuid = text;
  NvmlPciInfo pci{};
  if (nvml.pci(device, &pci) == 0) gpu.pci_bus_id = kernel_bus_id(pci.bus_id);
  NvmlMemory memory{};
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
    list.gpus.push_back(describe(nvml, index, topology.get()));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  list.gpus =
      select_visible(list.gpus, visible ? std::optional<std::string>(visible) : std::nullopt);
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
  const Nvml nvml;
  NvmlDevice device = nullptr;
  unsigned long long millijoules = 0;
  if (!nvml.reason.empty() || nvml.handle_of_uuid(uuid.c_str(), &device) != 0 ||
      nvml.energy(device, &millijoules) != 0)
    return std::nullopt;
  return 1e-3 * static_cast<double>(millijoules);
}

GpuList visible_gpus() {
  GpuList list;
  const Nvml nvml;
  list.reason = nvml.reason;
  if (list.reason.empty()) list_gpus(nvml, list);
  return list;
}

}  // namespace scalemark
