#include "analysis/resources.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "platform/slots.hpp"

namespace scalemark {
namespace {

int threads_of_core(const Json& run) {
  const Json& system = run.at("system");
  if (!system.is_object() || !system.value("threads", Json()).is_number() ||
      !system.value("cores", Json()).is_number())
    return 1;
  return std::max(1, system["threads"].get<int>() / std::max(1, system["cores"].get<int>()));
}

std::optional<int> count_cores(const Json& run) {
  std::map<std::string, std::set<int>> cpus;
  for (const Json& rank : run.at("ranks")) {
    if (rank.at("cpus").is_null()) return std::nullopt;
    const auto own = parse_cpu_list(rank["cpus"].get<std::string>());
    if (!own) return std::nullopt;
    cpus[rank.at("host").get<std::string>()].insert(own->begin(), own->end());
  }
  const int threads = threads_of_core(run);
  int cores = 0;
  for (const auto& [host, numbers] : cpus)
    cores += (static_cast<int>(numbers.size()) + threads - 1) / threads;
  return cores;
}

/// By UUID, or by host and number where the driver tells none.
std::optional<int> count_gpus(const Json& run) {
  std::set<std::string> gpus;
  for (const Json& rank : run.at("ranks")) {
    if (rank.at("gpu").is_null()) return std::nullopt;
    gpus.insert(rank.at("gpu_uuid").is_null()
                    ? rank.at("host").get<std::string>() + ":" + rank["gpu"].dump()
                    : rank["gpu_uuid"].get<std::string>());
  }
  return static_cast<int>(gpus.size());
}

}  // namespace

std::optional<int> count_resources(const Json& run, Resource resource) {
  switch (resource) {
    case Resource::rank:
      break;
    case Resource::node: {
      std::set<std::string> hosts;
      for (const Json& rank : run.at("ranks")) hosts.insert(rank.at("host").get<std::string>());
      return static_cast<int>(hosts.size());
    }
    case Resource::core:
      return count_cores(run);
    case Resource::gpu:
      return count_gpus(run);
  }
  return static_cast<int>(run.at("ranks").size());
}

std::string why_uncounted(Resource resource) {
  switch (resource) {
    case Resource::core:
      return "a rank does not say which CPUs it may run on, or repeats differ in their cores";
    case Resource::gpu:
      return "a rank used no GPU, or repeats differ in their GPUs";
    case Resource::rank:
    case Resource::node:
      break;
  }
  return "no run says where it ran, or repeats differ in their hosts";
}

}  // namespace scalemark
