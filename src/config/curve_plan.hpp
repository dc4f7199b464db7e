// A curve as the plan of a sweep: every point and repeat a launch of its own.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// The plan (docs/sweep.md) of `scale --repeat_unit launch`: its curves at `ranks`, with launches
/// without communication where they are asked for, `cpus_per_rank` at every point. ConfigError for
/// what only rounds of one launch have: --batch_size max, a base or micro-batches of their own.
nlohmann::ordered_json curve_plan(const LoadedConfig& loaded,
                                  const std::vector<std::int64_t>& ranks, int cpus_per_rank);

}  // namespace scalemark
