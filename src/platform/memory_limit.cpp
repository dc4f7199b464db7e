// Determines how much memory this process holds and may still take. tcmalloc is looked up at run
// time, since the front door is linked without it.
#include "platform/memory_limit.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "error.hpp"
#include "platform/sources.hpp"
#include "platform/topology.hpp"

namespace scalemark {

void require_descriptors(std::uint64_t fewest, const char* who) {
  constexpr rlim_t kMany = 65536;  // for a connection to each peer
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kMany));
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < fewest)
    throw EnvironmentError(fmt::format(
        "only {} open files are allowed, and {} needs {} or more: raise the limit (ulimit -n)",
        limit.rlim_cur, who, fewest));
}

std::string full_folder(const std::vector<std::filesystem::path>& folders) {
  constexpr std::uintmax_t kLeast = 1 << 20;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    if (!error && space.available < kLeast)
      return fmt::format(", and {} has no room left: free some space there", folder.string());
  }
  return "";
}

namespace {

/// Returns a function of tcmalloc's C interface, or null with another allocator.
template <typename Function>
Function* tcmalloc_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::int64_t tcmalloc_bytes(const char* property) {
  const auto get =
      tcmalloc_function<int(const char*, std::size_t*)>("MallocExtension_GetNumericProperty");
  std::size_t value = 0;
  return get && get(property, &value) ? static_cast<std::int64_t>(value) : 0;
}

/// Reads one line of /proc/self/status or /proc/meminfo, which count in kB.
std::optional<std::int64_t> kilobytes(const char* path, const char* key) {
  const auto text = read_text(path);
  const auto line = text ? line_value(*text, key) : std::nullopt;
  const auto number = line ? to_number(line->substr(0, line->find(' '))) : std::nullopt;
  return number ? std::optional(static_cast<std::int64_t>(*number) * 1024) : std::nullopt;
}

/// Returns what a soft limit of this process leaves, given that the line `used_key` of its status
/// counts against it.
std::optional<std::int64_t> limit_left(int resource, const char* used_key) {
  rlimit limit{};
  const auto used = kilobytes("/proc/self/status", used_key);
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || !used ||
      limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - *used);
}

void keep_least(std::optional<std::int64_t>& least, const std::optional<std::int64_t>& other) {
  if (other && (!least || *other < *least)) least = other;
}

}  // namespace

std::optional<std::int64_t> memory_left(int ranks_on_host) {
  std::optional<std::int64_t> left = kilobytes("/proc/meminfo", "MemAvailable");
  keep_least(left, cgroup_memory_left());
  if (left) *left /= std::max(1, ranks_on_host);
  // Only a third of the rest is usable. These limits count addresses, which the allocator never
  // gives back, including gaps. With half of the rest, one of nine runs beside others lacked a few
  // MiB after its search; with a third none of 30 did.
  for (const auto& room : {limit_left(RLIMIT_DATA, "VmData"), limit_left(RLIMIT_AS, "VmSize")})
    if (room) keep_least(left, *room / 3);
  return left;
}

MemoryKills::MemoryKills(const std::filesystem::path& root) : root_(root), before_(so_far()) {}

double MemoryKills::so_far() const {
  const auto text = read_text(root_ / "proc/vmstat");
  const auto value = text ? line_value(*text, "oom_kill") : std::nullopt;
  return (value ? to_number(*value) : std::nullopt).value_or(0);
}

std::string MemoryKills::told() const {
  const double killed = so_far() - before_;
  if (killed <= 0) return "";
  const auto limit = cgroup_memory_limit(root_);
  return fmt::format(
      "; out of memory: the kernel killed {:.0f} process{} of this host for it{}. Remedy: a "
      "smaller "
      "batch or --micro_batch_size, fewer ranks on this host, or more memory",
      killed, killed == 1 ? "" : "es",
      limit ? fmt::format(" (the limit of this control group: {:.0f} MiB)",
                          static_cast<double>(*limit) / (1 << 20))
            : "");
}

void release_free_memory() {
  if (const auto release = tcmalloc_function<void()>("MallocExtension_ReleaseFreeMemory"))
    release();
  else
    malloc_trim(0);
}

HeapUse heap_use() {
  if (const std::int64_t heap = tcmalloc_bytes("generic.heap_size"); heap > 0)
    return {heap - tcmalloc_bytes("tcmalloc.pageheap_unmapped_bytes"),
            tcmalloc_bytes("tcmalloc.pageheap_free_bytes")};
  return {kilobytes("/proc/self/status", "VmData").value_or(0), 0};
}

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
