// Computes how much of the CPUs of a host other processes used during a measurement.
#include "result/foreign_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "result/run_record.hpp"

namespace scalemark {
namespace {

struct Host {
  double busy = 0, own = 0, family = 0, seconds = 0;
  int cpus = 0;
  bool known = true, has_family = false;
};

}  // namespace

std::vector<ForeignLoad> foreign_loads(const std::vector<RankReport>& reports) {
  std::map<std::string, Host> hosts;
  for (const RankReport& report : reports) {
    const NoiseEvidence& noise = report.noise;
    Host& host = hosts[report.host];
    host.known = host.known && noise.busy_cpu_seconds && noise.seconds > 0;
    if (!host.known) continue;
    host.own += noise.own_cpu_seconds;
    host.has_family = host.has_family || noise.family_cpu_seconds;
    host.family = std::max(host.family, noise.family_cpu_seconds.value_or(0));
    host.cpus = report.cpus_of_host;
    if (noise.seconds <= host.seconds) continue;  // all ranks look at the same time, nearly
    host.seconds = noise.seconds;
    host.busy = *noise.busy_cpu_seconds;
  }
  std::vector<ForeignLoad> loads;
  for (const auto& [name, host] : hosts) {
    if (!host.known) continue;
    const double ours = host.has_family ? host.family : host.own;
    loads.push_back(
        {name, std::max(0.0, host.busy - ours) / host.seconds, host.cpus, host.seconds});
  }
  return loads;
}

std::optional<ForeignLoad> most_foreign(const std::vector<ForeignLoad>& hosts) {
  if (hosts.empty()) return std::nullopt;
  return *std::ranges::max_element(hosts, {}, &ForeignLoad::cpus);
}

}  // namespace scalemark
