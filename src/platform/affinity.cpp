// The CPUs that the kernel really lets this process use.
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>

#include "error.hpp"
#include "platform/binding.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {
/// sched_getaffinity with a mask that grows: machines may have more than the 1024 CPUs of
/// cpu_set_t.
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
}  // namespace

Affinity achieved_affinity() {
  Affinity affinity;
  affinity.cpus = allowed_cpus();
  if (const Topology topology = load_topology())
    affinity = affinity_of(topology.get(), std::move(affinity.cpus));
  const int count = affinity.cpus.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                          : static_cast<int>(affinity.cpus.size());
  affinity.usable = cut_by_quota(count);
  return affinity;
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
  if (cores.empty())  // some virtual machines show none
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

}  // namespace scalemark
