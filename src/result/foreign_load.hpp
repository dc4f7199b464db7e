// What processes other than the measured ones used of a host's CPUs during a measurement: busy time
// of the whole host, from /proc/stat, less the CPU time of the ranks. docs/measurements.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

struct RankReport;

struct ForeignLoad {
  std::string host;
  double cpus = 0;     ///< mean number of CPUs that others used
  int of_cpus = 0;     ///< logical ones of the host that are online
  double seconds = 0;  ///< that it was looked at

  /// More than what every machine does beside, and more than the ticks of the kernel leave open.
  bool notable() const;
  /// "other processes used 1.3 of 2 CPUs".
  std::string words() const;
};

/// Of each host where the kernel tells, by host. Of ranks that were measured beside other processes
/// of ours (instances, builds that take turns), these count as ours.
std::vector<ForeignLoad> foreign_loads(const std::vector<RankReport>& reports);

/// As `noise.foreign` of a record: of the host with the most; null where no host is known.
Json foreign_json(const std::vector<ForeignLoad>& hosts);
/// Of a record's `noise`; unset where that does not tell.
std::optional<ForeignLoad> foreign_load(const Json& record);

}  // namespace scalemark
