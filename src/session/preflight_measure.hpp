// What preflight measures on every rank; all ranks call these together.
#pragma once

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

/// Collectives of all sizes: {"transport", "algorithm", "rows", "allreduce_ratio"}. The same on all
/// ranks. For two ranks and more.
Json measure_collectives(Session& session);

/// The links between every two hosts, by a rank of each: at rank 0 the record's `pairs`, elsewhere
/// and where all ranks are on one host null.
Json measure_pairs(Session& session);

}  // namespace scalemark
