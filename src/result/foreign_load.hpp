// What processes other than the measured ones used of a host's CPUs during a measurement: busy time
// of the whole host, from /proc/stat, less the CPU time of the ranks. docs/measurements.md.
#pragma once

#include <optional>
#include <vector>

#include "record/measured.hpp"

namespace scalemark {

struct RankReport;
using record::ForeignLoad;

/// Of each host where the kernel tells, by host. Of ranks that were measured beside other processes
/// of ours (instances, builds that are interleaved), these count as ours.
std::vector<ForeignLoad> foreign_loads(const std::vector<RankReport>& reports);

/// Of the host with the most.
std::optional<ForeignLoad> most_foreign(const std::vector<ForeignLoad>& hosts);

}  // namespace scalemark
