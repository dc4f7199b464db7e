// See numa_memory.hpp.
#include "platform/numa_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "error.hpp"
#include "platform/topology.hpp"

namespace scalemark {

std::vector<int> numa_nodes() {
  const Topology topology = load_topology();
  std::vector<int> nodes;
  for (hwloc_obj_t node = nullptr;
       topology && (node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node));)
    if (node->attr->numanode.local_memory > 0) nodes.push_back(static_cast<int>(node->os_index));
  std::ranges::sort(nodes);
  return nodes;
}

NumaMemory::NumaMemory(int node, std::size_t bytes) : topology_(load_topology()), bytes_(bytes) {
  const auto topology = static_cast<hwloc_topology_t>(topology_.get());
  const hwloc_obj_t place =
      topology ? hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(node))
               : nullptr;
  errno = 0;
  if (place)
    data_ = hwloc_alloc_membind(topology, bytes, place->nodeset, HWLOC_MEMBIND_BIND,
                                HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT);
  if (!data_)
    throw EnvironmentError(fmt::format(
        "NUMA node {} does not give {} MiB: {}; the kernel, a container or a cgroup (cpuset.mems) "
        "may forbid to bind memory to it",
        node, bytes >> 20, place ? std::strerror(errno) : "hwloc sees no such node"));
  std::memset(data_, 0, bytes);
}

NumaMemory::~NumaMemory() {
  hwloc_free(static_cast<hwloc_topology_t>(topology_.get()), data_, bytes_);
}

}  // namespace scalemark
