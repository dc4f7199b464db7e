// See placement.hpp.
#include "launch/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "config/input_file.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/platform.hpp"
#include "platform/slots.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kLargestHostfile = 16 << 20;  // half a million hosts

}  // namespace

int cores_per_host() {
  static const int cores = physical_cores();  // some milliseconds; a sweep asks for each launch
  return cores;
}

Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment) {
  Resources resources;
  resources.cores_per_host = cores_per_host();
  if (device != Device::cpu) resources.gpus_per_host = static_cast<int>(visible_gpus().gpus.size());
  const auto nodes = environment.find("SLURM_JOB_NUM_NODES");
  const auto named = hostfile ? hosts_in(*hostfile) : std::set<std::string>();
  if (hostfile)
    resources.hosts = static_cast<int>(named.size());
  else if (nodes != environment.end())
    resources.hosts = static_cast<int>(
        std::clamp<std::int64_t>(parse_integer(nodes->second).value_or(1), 1, 1 << 20));
  resources.elsewhere = resources.hosts > 1 || !std::ranges::all_of(named, is_this_host);
  return resources;
}

Placement place_ranks(int ranks, const Resources& resources, std::optional<int> ranks_per_node) {
  const int per_host = ranks_per_node.value_or((ranks + resources.hosts - 1) / resources.hosts);
  return {std::max(1, resources.cores_per_host / per_host), per_host > resources.cores_per_host};
}

void refuse_too_few_hosts(int ranks, const Resources& resources, int ranks_per_node) {
  if (ranks <= static_cast<std::int64_t>(ranks_per_node) * resources.hosts) return;
  throw ConfigError(fmt::format(
      "{} ranks, {} on each node, need {} nodes, and here {} {}: give more --ranks_per_node, "
      "fewer ranks or more nodes (--hostfile, sbatch --nodes)",
      ranks, ranks_per_node, (ranks + ranks_per_node - 1) / ranks_per_node,
      resources.hosts == 1 ? "is" : "are", resources.hosts));
}

std::set<std::string> hosts_in(const std::string& hostfile) {
  std::istringstream lines;
  try {
    lines.str(read_input_file(hostfile, kLargestHostfile));
  } catch (const InputFault& fault) {
    refuse_at("--hostfile", fmt::format("{} can't be read ({}); give a file with one host a line",
                                        quote(hostfile), fault.what()));
  }
  std::set<std::string> hosts;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string host;
    if (words >> host && host[0] != '#') hosts.insert(host);
  }
  if (hosts.empty()) refuse_at("--hostfile", quote(hostfile) + " names no host");
  return hosts;
}

}  // namespace scalemark
