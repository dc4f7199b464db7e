// Reads and sets the CPUs on which the kernel lets this process run.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "error.hpp"
#include "platform/binding.hpp"
#include "platform/slots.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {
/// Calls sched_getaffinity with a mask that grows, since machines may have more than the 1024 CPUs
/// of cpu_set_t.
std::vector<int> allowed_cpus() {
  for (int count = CPU_SETSIZE; count <= (1 << 20); count *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    std::vector<unsigned long> words(bytes / sizeof(unsigned long));
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, bytes, mask) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
    return cpus;
  }
  return {};
}

int cut_by_quota(int cpus) {
  const auto quota = read_cgroup().quota_cpus;
  if (quota) cpus = std::min(cpus, static_cast<int>(std::ceil(*quota)));
  return std::max(cpus, 1);
}
Affinity affinity_on(std::vector<int> cpus) {
  Affinity affinity;
  affinity.cpus = std::move(cpus);
  if (const Topology topology = load_topology())
    affinity = affinity_of(topology.get(), std::move(affinity.cpus));
  const int count = affinity.cpus.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                          : static_cast<int>(affinity.cpus.size());
  affinity.usable = cut_by_quota(count);
  return affinity;
}
}  // namespace

Affinity achieved_affinity() { return affinity_on(allowed_cpus()); }

Affinity affinity_of_threads(Affinity known, const std::filesystem::path& tasks) {
  std::set<int> cpus;
  std::error_code error;
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const auto list =
        line_value(read_text(task->path() / "status").value_or(""), "Cpus_allowed_list");
    for (const int cpu : parse_cpu_list(list.value_or("")).value_or(std::vector<int>()))
      cpus.insert(cpu);
  }
  const std::vector<int> all(cpus.begin(), cpus.end());
  return all.empty() || all == known.cpus ? std::move(known) : affinity_on(all);
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string list;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!list.empty()) list += ',';
    list += std::to_string(cpus[first]);
    if (last > first) list += '-' + std::to_string(cpus[last]);
    first = last + 1;
  }
  return list;
}

std::vector<std::vector<int>> allowed_cores() {
  const std::vector<int> cpus = allowed_cpus();
  std::vector<std::vector<int>> cores;
  if (const Topology topology = load_topology()) cores = cores_within(topology.get(), cpus);
  if (cores.empty())  // some virtual machines have none
    for (const int cpu : cpus) cores.push_back({cpu});
  return cores;
}

int physical_cores() { return cut_by_quota(static_cast<int>(allowed_cores().size())); }

void pin_to(const std::vector<int>& cpus) {
  const int count = std::ranges::max(cpus) + 1;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  std::vector<unsigned long> words(bytes / sizeof(unsigned long));
  auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask);
  if (sched_setaffinity(0, bytes, mask) != 0)
    throw EnvironmentError("cannot be bound to CPUs " + format_cpu_list(cpus) + ": " +
                           std::strerror(errno));
}

// Reads the properties of the processor from /proc/cpuinfo.

namespace {
bool has_word(const std::string& words, std::string_view word) {
  return (" " + words + " ").find(" " + std::string(word) + " ") != std::string::npos;
}
}  // namespace

bool cpuinfo_has_native(std::string_view cpuinfo, std::string_view precision) {
  if (precision == "fp32") return true;
  auto flags = line_value(cpuinfo, "flags");
  if (!flags) flags = line_value(cpuinfo, "Features");
  if (!flags) return false;
  if (precision == "bf16")
    return has_word(*flags, "avx512_bf16") || has_word(*flags, "amx_bf16") ||
           has_word(*flags, "bf16");
  if (precision == "fp16")
    return has_word(*flags, "avx512_fp16") || has_word(*flags, "amx_fp16") ||
           has_word(*flags, "asimdhp");
  if (precision == "int8")
    return has_word(*flags, "avx512_vnni") || has_word(*flags, "avx_vnni") ||
           has_word(*flags, "amx_int8") || has_word(*flags, "asimddp");
  return false;  // no CPU has tf32
}

std::optional<std::string> cpuinfo_model(std::string_view cpuinfo) {
  for (const char* key : {"model name", "Model", "Hardware"})
    if (auto value = line_value(cpuinfo, key); value && !value->empty()) return value;
  return std::nullopt;
}

bool cpu_has_native(const std::string& precision) {
  return cpuinfo_has_native(read_text("/proc/cpuinfo").value_or(""), precision);
}

// Reads the peak resident memory of this process.

std::int64_t peak_rss_bytes() {
  const auto status = read_text("/proc/self/status");
  if (const auto line = status ? line_value(*status, "VmHWM") : std::nullopt)
    if (const auto kib = to_number(line->substr(0, line->find(' '))))
      return static_cast<std::int64_t>(*kib) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

void reset_peak_rss() {
  // Writing 5 resets VmHWM (proc(5)). Where that is refused, the peak covers the whole life of the
  // process.
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Reads CPU quota, throttling and memory of this process's cgroup, version 1 and 2.

namespace {
namespace fs = std::filesystem;

/// Parses one line of /proc/self/cgroup, "4:cpu,cpuacct:/slice/unit". Version 2 has
/// "0::/slice/unit".
struct Membership {
  std::string controllers, path;
};

std::vector<Membership> parse_membership(const std::string& text) {
  std::vector<Membership> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
}

bool names_controller(const std::string& controllers, const std::string& wanted) {
  std::istringstream words(controllers);
  for (std::string word; std::getline(words, word, ',');)
    if (word == wanted) return true;
  return false;
}

/// Returns the folder of the group and its ancestors up to the mount. In a container the path of
/// the host does not exist, but the mount itself is the group.
std::vector<fs::path> levels(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> found;
  for (fs::path path = fs::path(group).relative_path(); !path.empty(); path = path.parent_path()) {
    std::error_code error;
    if (fs::is_directory(mount / path, error)) found.push_back(mount / path);
  }
  found.push_back(mount);
  return found;
}

template <typename T, typename Better>
void keep(std::optional<T>& kept, const std::optional<T>& candidate, Better better) {
  if (candidate && (!kept || better(*candidate, *kept))) kept = candidate;
}

std::optional<double> quota_v1(const fs::path& folder) {
  const auto quota = read_text(folder / "cpu.cfs_quota_us");
  const auto period = read_text(folder / "cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const auto q = to_number(*quota), p = to_number(*period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return *q / *p;
}

std::optional<double> quota_v2(const fs::path& folder) {
  const auto text = read_text(folder / "cpu.max");
  if (!text) return std::nullopt;
  const auto space = text->find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto q = to_number(text->substr(0, space)), p = to_number(text->substr(space));
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;  // "max" is not a number
  return *q / *p;
}

std::optional<double> throttled(const fs::path& folder, const char* key, double unit_seconds) {
  const auto text = read_text(folder / "cpu.stat");
  const auto value = text ? line_value(*text, key) : std::nullopt;
  const auto number = value ? to_number(*value) : std::nullopt;
  if (!number) return std::nullopt;
  return *number * unit_seconds;
}

/// Reads a memory limit. Version 1 writes a limit beyond any machine's memory to say that there is
/// none.
std::optional<std::int64_t> memory_limit(const fs::path& folder, const char* name) {
  constexpr double kNoLimit = 1e18;
  const auto text = read_text(folder / name);
  const auto limit = text ? to_number(*text) : std::nullopt;  // "max" is not a number
  return limit && *limit <= kNoLimit ? std::optional(static_cast<std::int64_t>(*limit))
                                     : std::nullopt;
}

/// Returns limit - use + inactive file cache, in bytes.
std::optional<std::int64_t> memory_left(const fs::path& folder, const char* limit_name,
                                        const char* use_name, const char* cache_key) {
  const auto limit = memory_limit(folder, limit_name);
  const auto use_text = read_text(folder / use_name);
  const auto use = use_text ? to_number(*use_text) : std::nullopt;
  if (!limit || !use) return std::nullopt;
  const auto statistics = read_text(folder / "memory.stat");
  const auto cache = statistics ? line_value(*statistics, cache_key) : std::nullopt;
  const double free =
      static_cast<double>(*limit) - *use + (cache ? to_number(*cache).value_or(0) : 0);
  return static_cast<std::int64_t>(std::max(0., free));
}

std::optional<fs::path> first_folder(std::initializer_list<fs::path> candidates) {
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (fs::is_directory(candidate, error)) return candidate;
  }
  return std::nullopt;
}

/// Returns the least of `bytes_of(folder, is_version_1)` over this process's memory groups.
template <typename BytesOf>
std::optional<std::int64_t> least_of_memory_groups(const fs::path& root, BytesOf bytes_of) {
  std::optional<std::int64_t> least;
  const fs::path base = root / "sys/fs/cgroup";
  for (const Membership& membership :
       parse_membership(read_text(root / "proc/self/cgroup").value_or(""))) {
    const bool v1 = names_controller(membership.controllers, "memory");
    if (!v1 && !membership.controllers.empty()) continue;
    const auto mount = first_folder({base / (v1 ? "memory" : "unified"), base});
    if (!mount) continue;
    for (const fs::path& folder : levels(*mount, membership.path))
      keep(least, bytes_of(folder, v1), std::less<>());
  }
  return least;
}

}  // namespace

Cgroup read_cgroup(const fs::path& root) {
  Cgroup cgroup;
  const auto text = read_text(root / "proc/self/cgroup");
  const fs::path base = root / "sys/fs/cgroup";
  const auto memberships = parse_membership(text.value_or(""));
  for (const Membership& membership : memberships) {
    if (!names_controller(membership.controllers, "cpu")) continue;
    const auto mount =
        first_folder({base / membership.controllers, base / "cpu", base / "cpu,cpuacct"});
    if (!mount) continue;
    cgroup.version = 1;
    for (const fs::path& folder : levels(*mount, membership.path)) {
      keep(cgroup.quota_cpus, quota_v1(folder), std::less<>());
      keep(cgroup.throttled_seconds, throttled(folder, "throttled_time", 1e-9), std::greater<>());
    }
    return cgroup;
  }
  for (const Membership& membership : memberships) {
    if (!membership.controllers.empty()) continue;
    const auto mount =
        first_folder({base / "unified", base});  // hybrid systems mount it as unified
    if (!mount) continue;
    cgroup.version = 2;
    for (const fs::path& folder : levels(*mount, membership.path)) {
      keep(cgroup.quota_cpus, quota_v2(folder), std::less<>());
      keep(cgroup.throttled_seconds, throttled(folder, "throttled_usec", 1e-6), std::greater<>());
    }
  }
  return cgroup;
}

std::optional<std::int64_t> cgroup_memory_left(const fs::path& root) {
  return least_of_memory_groups(root, [](const fs::path& folder, bool v1) {
    return v1 ? memory_left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                            "total_inactive_file")
              : memory_left(folder, "memory.max", "memory.current", "inactive_file");
  });
}

std::optional<std::int64_t> cgroup_memory_limit(const fs::path& root) {
  return least_of_memory_groups(root, [](const fs::path& folder, bool v1) {
    return memory_limit(folder, v1 ? "memory.limit_in_bytes" : "memory.max");
  });
}

}  // namespace scalemark
