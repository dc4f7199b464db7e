// Where ranks go: what the hosts offer, and each rank's share of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "config/run_config.hpp"

namespace scalemark {

/// Physical cores within this process's mask and CPU quota.
int cores_per_host();

/// What this machine, or the allocation, offers.
struct Resources {
  int cores_per_host = 1;
  int gpus_per_host = 0;   ///< visible; 0 where the run is for the CPU
  int hosts = 1;           ///< of the host file or the Slurm allocation
  bool elsewhere = false;  ///< one of them, or the only one, is another than this
};
Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment);

struct Placement {
  int cpus_per_rank = 1;       ///< an equal share of a host's cores
  bool oversubscribe = false;  ///< more ranks than cores on a host
};
/// `ranks_per_node`: unset: as few as the hosts allow.
Placement place_ranks(int ranks, const Resources& resources,
                      std::optional<int> ranks_per_node = std::nullopt);

/// ConfigError where the hosts, with so many ranks on each, hold fewer than `ranks`.
void refuse_too_few_hosts(int ranks, const Resources& resources, int ranks_per_node);

/// Hosts in an Open MPI host file: lines that are neither empty nor comments, each name once.
/// ConfigError where it does not exist or names none.
std::set<std::string> hosts_in(const std::string& hostfile);

}  // namespace scalemark
