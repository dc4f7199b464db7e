// Checks the placement of ranks: cores shared by several ranks, bindings that were not achieved,
// CPUs of several NUMA nodes, and CPUs that are not near the GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/platform.hpp"
#include "platform/topology.hpp"

namespace scalemark {

/// The binding that a launcher was asked for.
struct RequestedBinding {
  std::string text = {};          ///< "core:2", "core", "none", "mask_cpu:..."; empty: unknown
  std::optional<int> cores = {};  ///< physical cores of a rank, where it says so
};

/// Reads the requested binding from the variables of scalemark's own launch, of Open MPI 4 (Open
/// MPI 5 sets none) and of srun.
RequestedBinding requested_binding(const std::map<std::string, std::string>& environment);

/// Returns the affinity of a process that may run on `cpus`, all of which count as usable.
Affinity affinity_of(hwloc_topology_t topology, std::vector<int> cpus);

/// Counts the physical cores of `cpus` that share a socket or NUMA node with the first one. This is
/// what a rank bound to that socket or node has, perhaps within an allocation. Returns nullopt for
/// policies other than "socket" and "numa".
std::optional<int> cores_of_policy(const std::string& policy, const std::vector<int>& cpus);

/// Describes where a rank runs. CPU numbers are those of its host.
struct RankPlace {
  int rank = 0;
  std::string host;
  std::vector<int> cpus;  ///< CPUs on which the kernel lets it run; empty: unknown
  int cores = 0;          ///< physical cores of those CPUs; 0: unknown
  RequestedBinding requested = {};
  int cpus_of_host = 0;                    ///< logical ones that are online; 0: unknown
  std::vector<int> near_cpus_of_gpu = {};  ///< empty: no GPU, or its place is unknown
  std::vector<int> numa = {};              ///< nodes of its CPUs; empty: unknown
  std::vector<int> partial_numa = {};      ///< nodes of its CPUs that have other CPUs, too
};

/// Says whether the placement of one rank is as it should be.
struct BindingVerdict {
  std::vector<int> overlaps_with;  ///< ranks of the same host that may run on one of its CPUs
  /// False where a binding was asked for, but the rank may run on every CPU of a host that it
  /// shares with other ranks, or on another number of cores. nullopt where it is unknown what was
  /// asked for or where the rank runs.
  std::optional<bool> as_asked;
  /// True where all CPUs of the rank are near its GPU. nullopt without a GPU, or where its place is
  /// unknown.
  std::optional<bool> near_gpu;
  /// True where the rank's CPUs belong to several NUMA nodes and leave out CPUs of one of these, so
  /// that part of its memory is remote. Having all CPUs of several nodes is no error. nullopt where
  /// the nodes are unknown.
  std::optional<bool> crosses_numa;
};

/// Returns one verdict for each place, in the order of `places`.
std::vector<BindingVerdict> binding_verdicts(const std::vector<RankPlace>& places);

/// Returns the CPUs for the rank that computes on GPU `mine`: the cores near that GPU, divided
/// evenly and in order among all GPUs (PCI bus ids) that are near the same cores, within `allowed`.
/// Returns an empty list where hwloc does not know the place, or where there are fewer cores than
/// GPUs.
std::vector<int> cpus_for_gpu(hwloc_topology_t topology, const std::vector<std::string>& gpus,
                              std::size_t mine, const std::vector<int>& allowed);

/// Moves this process to the CPUs of its GPU and returns them. `local_rank` numbers the ranks of
/// this host in the same way as the visible GPUs. Moves nothing and returns an empty list where the
/// process already runs near its GPU, where there is no GPU, or where the kernel refuses.
std::vector<int> move_near_gpu(int local_rank);

/// Groups neighbouring ranks of one host, in their order, as {host, ranks}. `hosts` is indexed by
/// rank.
std::vector<std::pair<std::string, int>> ranks_of_nodes(const std::vector<std::string>& hosts);
/// Describes a placement as "4 ranks on n0, 2 on n1". Of many nodes only the first ones are named.
std::string placement_words(const std::vector<std::pair<std::string, int>>& nodes);

}  // namespace scalemark
