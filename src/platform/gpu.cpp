// Lists NVIDIA GPUs and their MIG slices through NVML.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "platform/energy.hpp"
#include "platform/nvml.hpp"
#include "platform/sources.hpp"
#include "platform/topology.hpp"

namespace scalemark {
namespace {
template <typename F>
std::string text_of(F function, NvmlDevice device) {
  char text[128] = {};
  return function(device, text, sizeof text) == 0 ? text : "";
}

std::int64_t memory_of(const NvmlApi& nvml, NvmlDevice device) {
  NvmlMemory memory{};
  return nvml.memory(device, &memory) == 0 ? static_cast<std::int64_t>(memory.total) : 0;
}

/// Returns the MIG slices of a GPU. Their indices have gaps, so a missing index is no error.
std::vector<MigSlice> slices_of(const NvmlApi& nvml, NvmlDevice device) {
  std::vector<MigSlice> slices;
  unsigned most = 0;
  if (nvml.most_slices(device, &most) != 0) return slices;
  for (unsigned index = 0; index < most; ++index) {
    NvmlDevice slice = nullptr;
    if (nvml.slice(device, index, &slice) != 0) continue;
    slices.push_back(
        {text_of(nvml.uuid, slice), text_of(nvml.name, slice), memory_of(nvml, slice)});
    if (slices.back().uuid.empty()) slices.pop_back();  // it has no name to select it by
  }
  return slices;
}

GpuInfo describe(const NvmlApi& nvml, unsigned index, hwloc_topology_t topology) {
  GpuInfo gpu;
  gpu.index = static_cast<int>(index);
  NvmlDevice device = nullptr;
  char uuid[128] = {};
  int error = nvml.handle(index, &device);
  if (error == 0) error = nvml.uuid(device, uuid, sizeof uuid);
  if (error != 0) {
    gpu.reason = fmt::format("GPU {}: {}", index, nvml.error_string(error));
    return gpu;
  }
  gpu.uuid = uuid;
  gpu.name = text_of(nvml.name, device);
  gpu.memory_bytes = memory_of(nvml, device);
  unsigned current = 0, pending = 0;
  gpu.mig = nvml.knows_mig() && nvml.mig_mode(device, &current, &pending) == 0 && current != 0;
  if (gpu.mig) gpu.slices = slices_of(nvml, device);
  NvmlPciInfo pci{};
  if (nvml.pci(device, &pci) == 0) gpu.pci_bus_id = kernel_bus_id(pci.bus_id);
  if (topology != nullptr && !gpu.pci_bus_id.empty())
    gpu.near_cpus = cpus_near_pci(topology, gpu.pci_bus_id);
  return gpu;
}

const GpuInfo* find_gpu(const std::vector<GpuInfo>& all, const std::string& word) {
  const auto number = to_number(word);
  for (const GpuInfo& gpu : all) {
    if (number ? gpu.index == *number : (!gpu.uuid.empty() && gpu.uuid.starts_with(word)))
      return &gpu;
  }
  return nullptr;
}

/// Returns the GPU that contains the slice, with that slice alone.
std::optional<GpuInfo> find_slice(const std::vector<GpuInfo>& all, const std::string& word) {
  for (const GpuInfo& gpu : all)
    for (const MigSlice& slice : gpu.slices)
      if (slice.uuid.starts_with(word)) {
        GpuInfo found = gpu;
        found.slices = {slice};
        return found;
      }
  return std::nullopt;
}
}  // namespace

GpuList list_gpus(const NvmlApi& nvml, const std::optional<std::string>& cuda_visible_devices) {
  GpuList list;
  char version[96] = {};
  if (nvml.driver_version(version, sizeof version) == 0) list.driver_version = version;
  unsigned count = 0;
  if (const int error = nvml.count(&count); error != 0) {
    list.reason = std::string("NVML cannot count GPUs: ") + nvml.error_string(error);
    return list;
  }
  const Topology topology = count > 0 ? load_topology(true) : nullptr;
  for (unsigned index = 0; index < count; ++index)
    list.of_machine.push_back(describe(nvml, index, topology.get()));
  list.gpus = select_visible(list.of_machine, cuda_visible_devices);
  const auto lost = [](const GpuInfo& gpu) { return !gpu.reason.empty(); };
  const auto first_lost = std::ranges::find_if(list.gpus, lost);
  if (first_lost != list.gpus.end()) list.reason = first_lost->reason;
  std::erase_if(list.gpus, lost);
  if (!list.gpus.empty())
    list.reason.clear();
  else if (count == 0)
    list.reason = "the NVIDIA driver is loaded but shows no GPU";
  else if (list.reason.empty())
    list.reason = fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" names none of the {} GPUs",
                              cuda_visible_devices.value_or(""), count);
  return list;
}

std::vector<GpuInfo> select_visible(const std::vector<GpuInfo>& all,
                                    const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return all;
  std::vector<GpuInfo> visible;
  std::istringstream words(*cuda_visible_devices);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (word.empty()) break;
    if (auto part = find_slice(all, word); part && is_slice(word)) {
      const auto same = std::ranges::find(visible, part->uuid, &GpuInfo::uuid);
      if (same == visible.end())
        visible.push_back(std::move(*part));
      else
        same->slices.push_back(part->slices.front());
      continue;
    }
    const GpuInfo* gpu = find_gpu(all, word);
    if (gpu == nullptr) break;
    visible.push_back(*gpu);
  }
  return visible;
}

std::optional<double> gpu_joules(const std::string& uuid, std::string& reason) {
  if (is_slice(uuid)) {
    reason = uuid + " is a slice of a GPU, which counts the energy of all of its slices as one";
    return std::nullopt;
  }
  const Nvml nvml;
  NvmlPlace place;
  unsigned long long millijoules = 0;
  reason = nvml.reason.empty() ? find_place(nvml, uuid, place) : nvml.reason;
  if (!reason.empty()) return std::nullopt;
  if (const int error = nvml.energy(place.gpu, &millijoules); error != 0) {
    reason = "NVML does not tell the energy of " + uuid + ": " + nvml.error_string(error);
    return std::nullopt;
  }
  return 1e-3 * static_cast<double>(millijoules);
}

const GpuInfo* gpu_of(const std::vector<GpuInfo>& gpus, std::string_view uuid) {
  const auto found = std::ranges::find_if(gpus, [&](const GpuInfo& gpu) {
    return gpu.uuid == uuid ||
           std::ranges::find(gpu.slices, uuid, &MigSlice::uuid) != gpu.slices.end();
  });
  return found == gpus.end() || uuid.empty() ? nullptr : &*found;
}

std::string uuid_of_cuda(std::span<const char, 16> bytes, const GpuList& list) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(bytes[i]));
  if (gpu_of(list.of_machine, "GPU-" + text) == nullptr)
    return (std::ranges::any_of(list.of_machine, &GpuInfo::mig) ? "MIG-" : "GPU-") + text;
  const GpuInfo* visible = gpu_of(list.gpus, "GPU-" + text);
  const bool one_slice = visible != nullptr && visible->slices.size() == 1;
  return one_slice ? visible->slices.front().uuid : "GPU-" + text;
}

GpuList visible_gpus() {
  const Nvml nvml;
  GpuList none;
  none.reason = nvml.reason;
  if (!none.reason.empty()) return none;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return list_gpus(nvml, visible ? std::optional<std::string>(visible) : std::nullopt);
}

}  // namespace scalemark
