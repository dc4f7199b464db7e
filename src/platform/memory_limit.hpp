// Determines how much memory this process holds and may still take, so that work that is too large
// is refused before the kernel's OOM killer ends it, and what else it may run out of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// Returns how many bytes this process may still take, or nullopt where no limit is known. This is
/// the least of three: the host's available memory (MemAvailable) and that of the cgroup, each
/// divided among `ranks_on_host` processes that ask at the same time, and a third of what the
/// resource limits of this process (RLIMIT_DATA, RLIMIT_AS) leave.
std::optional<std::int64_t> memory_left(int ranks_on_host);

/// Counts the processes that the kernel has killed on this host for lack of memory since this
/// object was made, in control groups or overall (proc/vmstat below `root`).
class MemoryKills {
 public:
  explicit MemoryKills(const std::filesystem::path& root = "/");
  /// Returns "; out of memory: ..." with the limit of this process's control group and the remedy,
  /// to be appended to the message of how a process ended. Returns an empty text where no process
  /// was killed.
  std::string told() const;

 private:
  double so_far() const;
  std::filesystem::path root_;
  double before_;
};

/// Raises the limit of open files as far as allowed. Throws EnvironmentError, naming `who` needs
/// them, where it is below `fewest` all the same.
void require_descriptors(std::uint64_t fewest, const char* who);

/// Returns ", and FOLDER has no room left" for the first of the folders whose file system is full,
/// or an empty text.
std::string full_folder(const std::vector<std::filesystem::path>& folders);

/// Returns the allocator's free pages to the kernel.
void release_free_memory();

/// Bytes of this process's heap. With an allocator other than tcmalloc, `held` is all its private
/// memory (VmData) and `free` is unknown, 0.
struct HeapUse {
  std::int64_t held = 0;  ///< taken from the kernel and not given back
  std::int64_t free = 0;  ///< part of `held` that the allocator keeps as free pages
};
HeapUse heap_use();

// Provides memory of a chosen NUMA node.

/// Returns the operating system's numbers of the NUMA nodes of this machine that have memory,
/// ascending. Returns an empty list where hwloc finds none.
std::vector<int> numa_nodes();

/// Holds pages that are bound to a NUMA node and were touched.
class NumaMemory {
 public:
  /// Throws EnvironmentError where the node does not provide the memory.
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
