// The numbers of GPUs by the names that rules know them by. Internal to analysis/.
#pragma once

#include <vector>

#include "analysis/preflight/values.hpp"

namespace scalemark {

/// Of an entry of `ranks`, at the place that `here` names; nothing without a GPU.
void add_gpu_values(std::vector<PreflightValue>& values, const Json& rank,
                    const PreflightValue& here);

/// Of an entry of `hosts`: every ordered pair of its GPUs.
void add_peer_values(std::vector<PreflightValue>& values, const Json& host,
                     const PreflightValue& here);

}  // namespace scalemark
