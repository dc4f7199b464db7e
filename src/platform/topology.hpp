// Loads hwloc's view of this machine on demand. It is null where hwloc cannot load it.
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

/// Loads the whole machine, including what a cgroup forbids. `pci` adds PCI devices.
Topology load_topology(bool pci = false);

/// Returns the CPUs near a PCI device, for example "0000:3b:00.0", or an empty list where they are
/// unknown.
std::vector<int> cpus_near_pci(hwloc_topology_t topology, const std::string& pci_bus_id);

/// Returns the cores that have at least one of these logical CPUs, with neighbouring cores
/// adjacent. Each core lists those of its CPUs that are in `cpus`, ascending.
std::vector<std::vector<int>> cores_within(hwloc_topology_t topology, const std::vector<int>& cpus);

/// Returns all logical CPUs that are online, ascending.
std::vector<int> cpus_of_machine(hwloc_topology_t topology);

/// Returns the CPUs that a cgroup lets this process use, whatever its mask is now.
std::vector<int> cpus_allowed(hwloc_topology_t topology);

/// Returns the logical CPUs of the socket, or of the NUMA node, to which this CPU belongs. Returns
/// an empty list where hwloc shows none.
std::vector<int> cpus_of_socket(hwloc_topology_t topology, int cpu);
std::vector<int> cpus_of_numa(hwloc_topology_t topology, int cpu);

/// Returns the NUMA nodes of these logical CPUs, ascending. The second function returns only those
/// that have other CPUs, too.
std::vector<int> numa_of(hwloc_topology_t topology, const std::vector<int>& cpus);
std::vector<int> partial_numa_of(hwloc_topology_t topology, const std::vector<int>& cpus);

}  // namespace scalemark
