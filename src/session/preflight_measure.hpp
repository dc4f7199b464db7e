// Measures the ranks of a preflight. All ranks call these functions together.
#pragma once

#include <optional>
#include <vector>

#include "result/preflight_record.hpp"
#include "session/session.hpp"

namespace scalemark {

/// Separates two measurements by a barrier. Where a signal has reached any rank, all ranks throw
/// AgreedError.
void leave_if_stopped(Session& session);

/// Measures matrix products, memory and noise of this rank, on all ranks at once; on the first rank
/// of each host also its scratch file, and on a GPU its state and copies. With --pinning it only
/// finds where the rank runs. The report has no noise yet: the caller counts it up to the end of
/// the collectives.
PreflightRank measure_rank(Session& session);

/// Measures collectives of all sizes on two ranks or more. The result is the same on all ranks.
record::Collectives measure_collectives(Session& session);

/// Measures the links between every two hosts, by one rank of each. Returns them at rank 0, and
/// nothing elsewhere or where all ranks are on one host.
std::optional<std::vector<record::HostPair>> measure_pairs(Session& session);

}  // namespace scalemark
