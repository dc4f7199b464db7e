// hwloc's view of this machine, loaded when asked for. Null where hwloc cannot load it.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace scalemark {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

/// The whole machine, including what a cgroup forbids. `pci`: with PCI devices.
Topology load_topology(bool pci = false);

/// CPUs near a PCI device, e.g. "0000:3b:00.0"; empty where unknown.
std::vector<int> cpus_near_pci(hwloc_topology_t topology, const std::string& pci_bus_id);

/// Cores that have at least one of these logical CPUs, neighbours side by side: of each those of
/// its CPUs that are among them, ascending.
std::vector<std::vector<int>> cores_within(hwloc_topology_t topology, const std::vector<int>& cpus);

/// All logical CPUs that are online, ascending.
std::vector<int> cpus_of_machine(hwloc_topology_t topology);

/// What a cgroup lets this process use of the machine, whatever its mask is now.
std::vector<int> cpus_allowed(hwloc_topology_t topology);

/// The logical CPUs of the socket, or of the NUMA node, that this one is of; empty where hwloc
/// shows none.
std::vector<int> cpus_of_socket(hwloc_topology_t topology, int cpu);
std::vector<int> cpus_of_numa(hwloc_topology_t topology, int cpu);

/// NUMA nodes of these logical CPUs, ascending; and those that have other CPUs, too.
std::vector<int> numa_of(hwloc_topology_t topology, const std::vector<int>& cpus);
std::vector<int> partial_numa_of(hwloc_topology_t topology, const std::vector<int>& cpus);

}  // namespace scalemark
