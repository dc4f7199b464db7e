// What a run ran on, counted: the divisor of efficiency.
#pragma once

#include <optional>
#include <string>

#include "config/run_config.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Ranks, distinct hosts, distinct cores or distinct GPUs of a run record's `ranks`. Cores are the
/// distinct logical CPUs that the ranks may run on, by host, divided by the threads of a core of
/// the recorded machine (1 where unknown). nullopt where a rank does not say what it runs on.
std::optional<int> count_resources(const Json& run, Resource resource);

/// Why count_resources() has nothing to count.
std::string why_uncounted(Resource resource);

}  // namespace scalemark
