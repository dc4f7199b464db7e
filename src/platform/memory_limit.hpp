// A limit on this process's own heap, so that a batch that is too large fails as an exception
// instead of waking the kernel's OOM killer.
#pragma once

#include <cstdint>
#include <optional>

namespace scalemark {

/// Bytes that this process may still take: the least of the host's available memory (MemAvailable)
/// and the cgroup's, both shared by `ranks_on_host` processes that ask at the same time, and of
/// what its resource limits (RLIMIT_DATA, RLIMIT_AS) leave it. nullopt where none of them is known.
std::optional<std::int64_t> memory_left(int ranks_on_host);

/// Gives free pages that the allocator keeps back to the kernel.
void release_free_memory();

/// While it lives, the heap may grow by `more_bytes` beyond what is in use and no further: malloc
/// returns null, new throws std::bad_alloc. With tcmalloc through its own heap limit, which counts
/// the pages in use and leaves thread stacks and foreign mappings alone; with another allocator
/// through the soft RLIMIT_DATA. One at a time.
class HeapLimit {
 public:
  explicit HeapLimit(std::int64_t more_bytes);
  ~HeapLimit();
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;

 private:
  std::optional<std::uint64_t> data_limit_;  ///< the soft RLIMIT_DATA before, where it was changed
};

}  // namespace scalemark
