// How much memory this process holds and may still take, so that what is too large can be refused
// before the kernel's OOM killer wakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// Bytes that this process may still take: the least of the host's available memory (MemAvailable)
/// and the cgroup's, both shared by `ranks_on_host` processes that ask at the same time, and of
/// a third of what its resource limits (RLIMIT_DATA, RLIMIT_AS) leave it. nullopt where none of
/// them is known.
std::optional<std::int64_t> memory_left(int ranks_on_host);

/// What the kernel did on this host since this object was made: its count of processes that it has
/// killed for want of memory, in control groups or in all (proc/vmstat below `root`).
class MemoryKills {
 public:
  explicit MemoryKills(const std::filesystem::path& root = "/");
  /// "; out of memory: ..." with the limit of our control group and the remedy, to follow how a
  /// process ended; empty where there were none.
  std::string told() const;

 private:
  double so_far() const;
  std::filesystem::path root_;
  double before_;
};

/// Gives free pages that the allocator keeps back to the kernel.
void release_free_memory();

/// Bytes of this process's heap. With another allocator than tcmalloc `held` is all its private
/// memory (VmData) and `free` is unknown, 0.
struct HeapUse {
  std::int64_t held = 0;  ///< taken from the kernel and not given back
  std::int64_t free = 0;  ///< of that, pages that the allocator keeps for later
};
HeapUse heap_use();

// Memory of a chosen NUMA node.

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
