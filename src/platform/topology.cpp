// Finds cores, NUMA nodes and what is near a PCI device with hwloc.
#include "platform/topology.hpp"

namespace scalemark {
namespace {
struct CpuSet {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  explicit CpuSet(const std::vector<int>& cpus) {
    for (int cpu : cpus) hwloc_bitmap_set(set, static_cast<unsigned>(cpu));
  }
  ~CpuSet() { hwloc_bitmap_free(set); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
};

std::vector<int> numbers_in(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) numbers.push_back(i);
  return numbers;
}

std::vector<int> cpus_of(hwloc_topology_t topology, hwloc_obj_type_t type, int cpu) {
  for (hwloc_obj_t part = nullptr;
       (part = hwloc_get_next_obj_by_type(topology, type, part)) != nullptr;)
    if (part->cpuset != nullptr && hwloc_bitmap_isset(part->cpuset, static_cast<unsigned>(cpu)))
      return numbers_in(part->cpuset);
  return {};
}

/// Returns whether a node is a further memory of CPUs that have one of their own, as HBM, Optane
/// and CXL are: its CPUs are those of another node, or of several.
bool is_further_memory(hwloc_topology_t topology, hwloc_obj_t node) {
  for (hwloc_obj_t other = nullptr;
       (other = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, other)) != nullptr;) {
    if (other == node || other->cpuset == nullptr || hwloc_bitmap_iszero(other->cpuset) ||
        !hwloc_bitmap_isincluded(other->cpuset, node->cpuset))
      continue;
    if (!hwloc_bitmap_isequal(other->cpuset, node->cpuset) || other->os_index < node->os_index)
      return true;
  }
  return false;
}

/// Returns the NUMA nodes that share a CPU with `cpus` and satisfy `accepts(CPUs of the node, these
/// CPUs)`. Further memories of a node's CPUs are none of their own.
template <typename Accepts>
std::vector<int> numa_where(hwloc_topology_t topology, const std::vector<int>& cpus,
                            Accepts accepts) {
  const CpuSet mask(cpus);
  std::vector<int> nodes;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    if (node->cpuset != nullptr && hwloc_bitmap_intersects(node->cpuset, mask.set) &&
        accepts(node->cpuset, mask.set) && !is_further_memory(topology, node))
      nodes.push_back(static_cast<int>(node->os_index));
  return nodes;
}
}  // namespace

Topology load_topology(bool pci) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  // hwloc's plugins start OpenCL, CUDA and X11 drivers, which takes seconds. Nothing here needs
  // them.
  for (const char* component : {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (pci) hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

std::vector<int> cpus_near_pci(hwloc_topology_t topology, const std::string& pci_bus_id) {
  hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, pci_bus_id.c_str());
  if (device == nullptr) return {};
  hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
  return near == nullptr || near->cpuset == nullptr ? std::vector<int>() : numbers_in(near->cpuset);
}

std::vector<std::vector<int>> cores_within(hwloc_topology_t topology,
                                           const std::vector<int>& cpus) {
  std::vector<std::vector<int>> cores;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    std::vector<int> own;
    for (const int cpu : cpus)
      if (hwloc_bitmap_isset(core->cpuset, static_cast<unsigned>(cpu))) own.push_back(cpu);
    if (!own.empty()) cores.push_back(std::move(own));
  }
  return cores;
}

std::vector<int> cpus_of_machine(hwloc_topology_t topology) {
  return numbers_in(hwloc_topology_get_topology_cpuset(topology));
}

std::vector<int> cpus_allowed(hwloc_topology_t topology) {
  return numbers_in(hwloc_topology_get_allowed_cpuset(topology));
}

std::vector<int> cpus_of_socket(hwloc_topology_t topology, int cpu) {
  return cpus_of(topology, HWLOC_OBJ_PACKAGE, cpu);
}

std::vector<int> cpus_of_numa(hwloc_topology_t topology, int cpu) {
  return cpus_of(topology, HWLOC_OBJ_NUMANODE, cpu);
}

std::vector<int> numa_of(hwloc_topology_t topology, const std::vector<int>& cpus) {
  return numa_where(topology, cpus, [](auto, auto) { return true; });
}

std::vector<int> partial_numa_of(hwloc_topology_t topology, const std::vector<int>& cpus) {
  return numa_where(topology, cpus, [](hwloc_const_bitmap_t node, hwloc_const_bitmap_t mask) {
    return !hwloc_bitmap_isincluded(node, mask);
  });
}

}  // namespace scalemark
