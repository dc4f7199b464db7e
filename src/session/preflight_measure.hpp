// What preflight measures on every rank; all ranks call these together.
#pragma once

#include <optional>
#include <vector>

#include "result/preflight_record.hpp"
#include "session/session.hpp"

namespace scalemark {

/// Between two measurements, and their barrier: where a signal has reached any rank, all throw
/// AgreedError.
void leave_if_stopped(Session& session);

/// GEMM, memory and noise of this rank, all ranks at once; of the first rank of each host also its
/// scratch file; of a GPU its state and copies. With --pinning only where the rank runs. The report
/// is without noise: the caller counts it to the end of the collectives.
PreflightRank measure_rank(Session& session);

/// Collectives of all sizes. The same on all ranks. For two ranks and more.
record::Collectives measure_collectives(Session& session);

/// The links between every two hosts, by a rank of each, at rank 0; elsewhere, and where all ranks
/// are on one host, nothing.
std::optional<std::vector<record::HostPair>> measure_pairs(Session& session);

}  // namespace scalemark
