// Compares where ranks run with the binding that their launcher was asked for, and moves ranks near
// their GPU.
#include "platform/binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "error.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::ranges::find(cpus, cpu) != cpus.end();
}

bool share_a_cpu(const RankPlace& a, const RankPlace& b) {
  return a.host == b.host &&
         std::ranges::any_of(a.cpus, [&](int cpu) { return contains(b.cpus, cpu); });
}

bool within(const std::vector<int>& cpus, const std::vector<int>& others) {
  return std::ranges::all_of(cpus, [&](int cpu) { return contains(others, cpu); });
}

/// Returns whether a binding was requested. Open MPI and Slurm say "none" for no binding, Slurm
/// also "no".
bool asks_for_binding(const std::string& requested) {
  return requested != "none" && requested != "no" && !requested.starts_with("none:");
}

/// Returns the number after the last `prefix`, for example 2 for "slot:PE=2".
std::optional<int> number_after(const std::string& text, const std::string& prefix) {
  const std::size_t at = text.rfind(prefix);
  if (at == text.npos) return std::nullopt;
  const std::string digits = text.substr(at + prefix.size());
  const auto number = to_number(digits.substr(0, digits.find_first_not_of("0123456789")));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<bool> bound_as_asked(const RankPlace& place, bool alone) {
  if (place.requested.text.empty() || place.cpus.empty() || place.cpus_of_host <= 0)
    return std::nullopt;
  if (!asks_for_binding(place.requested.text)) return true;
  if (place.requested.cores && place.cores > 0) return *place.requested.cores == place.cores;
  return alone || static_cast<int>(place.cpus.size()) < place.cpus_of_host;
}

}  // namespace

RequestedBinding requested_binding(const std::map<std::string, std::string>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string ours = value("SMK_INTERNAL_BINDING"); !ours.empty())
    return {ours, number_after(ours, "core:")};
  if (const std::string policy = value("OMPI_MCA_hwloc_base_binding_policy"); !policy.empty()) {
    if (policy != "core") return {policy, std::nullopt};
    return {policy, number_after(value("OMPI_MCA_rmaps_base_mapping_policy"), "PE=").value_or(1)};
  }
  return {value("SLURM_CPU_BIND_TYPE"), std::nullopt};
}

Affinity affinity_of(hwloc_topology_t topology, std::vector<int> cpus) {
  Affinity affinity;
  affinity.numa = numa_of(topology, cpus);
  affinity.partial_numa = partial_numa_of(topology, cpus);
  affinity.cores = static_cast<int>(cores_within(topology, cpus).size());
  affinity.usable = static_cast<int>(cpus.size());
  affinity.cpus = std::move(cpus);
  return affinity;
}

std::optional<int> cores_of_policy(const std::string& policy, const std::vector<int>& cpus) {
  const bool numa = policy == "numa";
  if (cpus.empty() || (!numa && policy != "socket")) return std::nullopt;
  const Topology topology = load_topology();
  if (!topology) return std::nullopt;
  const std::vector<int> domain = numa ? cpus_of_numa(topology.get(), cpus.front())
                                       : cpus_of_socket(topology.get(), cpus.front());
  std::vector<int> own;
  std::ranges::copy_if(cpus, std::back_inserter(own),
                       [&](int cpu) { return contains(domain, cpu); });
  const auto cores = cores_within(topology.get(), own).size();
  return cores == 0 ? std::nullopt : std::optional(static_cast<int>(cores));
}

std::vector<BindingVerdict> binding_verdicts(const std::vector<RankPlace>& places) {
  std::vector<BindingVerdict> verdicts;
  for (const RankPlace& place : places) {
    BindingVerdict verdict;
    bool alone = true;
    for (const RankPlace& other : places) {
      if (other.rank == place.rank) continue;
      alone = alone && other.host != place.host;
      if (share_a_cpu(place, other)) verdict.overlaps_with.push_back(other.rank);
    }
    verdict.as_asked = bound_as_asked(place, alone);
    if (!place.near_cpus_of_gpu.empty() && !place.cpus.empty())
      verdict.near_gpu = within(place.cpus, place.near_cpus_of_gpu);
    if (!place.numa.empty())
      verdict.crosses_numa = place.numa.size() > 1 && !place.partial_numa.empty();
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::vector<int> cpus_for_gpu(hwloc_topology_t topology, const std::vector<std::string>& gpus,
                              std::size_t mine, const std::vector<int>& allowed) {
  const std::vector<int> near = cpus_near_pci(topology, gpus[mine]);
  std::size_t sharing = 0,
              place = 0;  // GPUs near the same CPUs, and how many of them precede this one
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (cpus_near_pci(topology, gpus[i]) != near) continue;
    ++sharing;
    place += i < mine ? 1 : 0;
  }
  std::vector<int> usable;
  std::ranges::copy_if(near, std::back_inserter(usable),
                       [&](int cpu) { return contains(allowed, cpu); });
  const auto cores = cores_within(topology, usable);
  const std::size_t share = cores.size() / sharing;
  std::vector<int> cpus;
  for (std::size_t core = place * share; core < (place + 1) * share; ++core)
    cpus.insert(cpus.end(), cores[core].begin(), cores[core].end());
  std::ranges::sort(cpus);
  return cpus;
}

std::vector<int> move_near_gpu(int local_rank) {
  const GpuList list = visible_gpus();
  if (list.gpus.empty()) return {};
  // A task that sees one GPU got it from its launcher, whatever its rank.
  const std::size_t visible = list.gpus.size() == 1 ? 0 : static_cast<std::size_t>(local_rank);
  if (visible >= list.gpus.size()) return {};
  const GpuInfo& gpu = list.gpus[visible];
  const Affinity now = achieved_affinity();
  if (gpu.near_cpus.empty() || within(now.cpus, gpu.near_cpus)) return {};
  std::vector<std::string> buses;
  std::size_t mine = 0;
  for (const GpuInfo& other : list.of_machine) {
    if (other.uuid == gpu.uuid) mine = buses.size();
    buses.push_back(other.pci_bus_id);
  }
  const Topology topology = load_topology(/*pci=*/true);
  if (!topology) return {};
  const auto cpus = cpus_for_gpu(topology.get(), buses, mine, cpus_allowed(topology.get()));
  if (cpus.empty()) return {};
  try {
    pin_to(cpus);
  } catch (const EnvironmentError&) {
    return {};
  }
  return cpus;
}

std::vector<std::pair<std::string, int>> ranks_of_nodes(const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, int>> nodes;
  for (const std::string& host : hosts) {
    if (nodes.empty() || nodes.back().first != host) nodes.emplace_back(host, 0);
    ++nodes.back().second;
  }
  return nodes;
}

std::string placement_words(const std::vector<std::pair<std::string, int>>& nodes) {
  constexpr std::size_t kShown = 8;
  std::string words;
  for (std::size_t i = 0; i < std::min(nodes.size(), kShown); ++i)
    words += fmt::format("{}{}{} on {}", i == 0 ? "" : ", ", nodes[i].second,
                         i > 0                  ? ""
                         : nodes[i].second == 1 ? " rank"
                                                : " ranks",
                         nodes[i].first);
  return nodes.size() <= kShown ? words
                                : fmt::format("{} and so on over {} nodes", words, nodes.size());
}

}  // namespace scalemark
