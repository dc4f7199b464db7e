// Memory of a chosen NUMA node.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace scalemark {

/// Operating system's numbers of the NUMA nodes of this machine that have memory, ascending; empty
/// where hwloc sees none.
std::vector<int> numa_nodes();

/// Pages bound to a node, and touched.
class NumaMemory {
 public:
  /// Throws EnvironmentError where the node does not give the memory.
  NumaMemory(int node, std::size_t bytes);
  ~NumaMemory();
  NumaMemory(const NumaMemory&) = delete;
  NumaMemory& operator=(const NumaMemory&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> topology_;  ///< hwloc's, by which it is given back
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace scalemark
