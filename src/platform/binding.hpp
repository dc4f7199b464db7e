// Where ranks run against what their launcher was asked for and where their memory and GPU are:
// ranks that share cores, bindings that did not come about, CPUs of several NUMA nodes, and CPUs
// near a GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/platform.hpp"
#include "platform/topology.hpp"

namespace scalemark {

/// What a launcher was asked for.
struct RequestedBinding {
  std::string text = {};          ///< "core:2", "core", "none", "mask_cpu:..."; empty: unknown
  std::optional<int> cores = {};  ///< physical cores of a rank, where it says so
};

/// From the variables of scalemark's own launch, of Open MPI 4 (Open MPI 5 does not tell) and of
/// srun.
RequestedBinding requested_binding(const std::map<std::string, std::string>& environment);

/// Of a process that may run on these CPUs; `usable` are all of them.
Affinity affinity_of(hwloc_topology_t topology, std::vector<int> cpus);

/// Physical cores of those `cpus` that are of one socket or NUMA node with the first: all that a
/// rank has which was bound to it, perhaps within an allocation. nullopt for policies other than
/// "socket" and "numa".
std::optional<int> cores_of_policy(const std::string& policy, const std::vector<int>& cpus);

/// A rank's place. CPU numbers are those of its host.
struct RankPlace {
  int rank = 0;
  std::string host;
  std::vector<int> cpus;  ///< that the kernel lets it run on; empty: unknown
  int cores = 0;          ///< physical cores of those CPUs; 0: unknown
  RequestedBinding requested = {};
  int cpus_of_host = 0;                    ///< logical ones that are online; 0: unknown
  std::vector<int> near_cpus_of_gpu = {};  ///< empty: no GPU, or its place is unknown
  std::vector<int> numa = {};              ///< nodes of its CPUs; empty: unknown
  std::vector<int> partial_numa = {};      ///< those of them that have other CPUs, too
};

struct BindingVerdict {
  std::vector<int> overlaps_with;  ///< ranks of the same host that may run on one of its CPUs
  /// False: a binding was asked for, but the rank may run on every CPU of a host that it shares
  /// with other ranks, or on another number of cores. nullopt: it is not known what was asked for,
  /// or where the rank runs.
  std::optional<bool> as_asked;
  /// Whether all CPUs of the rank are near its GPU; nullopt without a GPU, or where its place is
  /// unknown.
  std::optional<bool> near_gpu;
  /// Whether its CPUs are of several NUMA nodes and leave out CPUs of one of these: part of its
  /// memory is far. All CPUs of several nodes are no mistake. nullopt: the nodes are unknown.
  std::optional<bool> crosses_numa;
};

/// One verdict a place, in their order.
std::vector<BindingVerdict> binding_verdicts(const std::vector<RankPlace>& places);

/// The CPUs of the rank that computes on GPU `mine`: the cores near that GPU, divided evenly and in
/// order among all GPUs (PCI bus ids) that are near the same cores, within `allowed`. Empty where
/// hwloc does not know the place, or where there are fewer cores than GPUs.
std::vector<int> cpus_for_gpu(hwloc_topology_t topology, const std::vector<std::string>& gpus,
                              std::size_t mine, const std::vector<int>& allowed);

/// Moves this process to the CPUs of its GPU and gives them: `local_rank` counts the ranks of this
/// host and the visible GPUs alike. Empty, and nothing moved, where it runs near its GPU already,
/// where there is none, or where the kernel refuses.
std::vector<int> move_near_gpu(int local_rank);

/// Runs of neighbouring ranks on one host, in their order: {host, ranks}. `hosts`: by rank.
std::vector<std::pair<std::string, int>> ranks_of_nodes(const std::vector<std::string>& hosts);
/// "4 ranks on n0, 2 on n1"; of many nodes the first.
std::string placement_words(const std::vector<std::pair<std::string, int>>& nodes);

}  // namespace scalemark
