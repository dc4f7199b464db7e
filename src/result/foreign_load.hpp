// What processes other than the measured ones used of a host's CPUs during a measurement: busy time
// of the whole host, from /proc/stat, less the CPU time of the ranks. docs/measurements.md.
#pragma once

#include <optional>
#include <vector>

#include "record/measured.hpp"

namespace scalemark {

struct RankReport;
using record::ForeignLoad;

/// Returns the foreign load of each host whose kernel tells it, in the order of hosts. Where ranks
/// were measured beside other processes of ours (instances, builds that are interleaved), these
/// count as ours.
std::vector<ForeignLoad> foreign_loads(const std::vector<RankReport>& reports);

/// Returns the load of the host that has the most.
std::optional<ForeignLoad> most_foreign(const std::vector<ForeignLoad>& hosts);

}  // namespace scalemark
