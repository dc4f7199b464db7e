// A run as lines of MLPerf's logging, which its tools and many dashboards read: ":::MLLOG {...}",
// keys of https://github.com/mlcommons/logging.
#pragma once

#include <string>

#include "json.hpp"

namespace scalemark {

/// Of a run's record: what was run, run_start, a block with tracked_stats (throughput in samples a
/// second, step_seconds) and train_loss every `display_every` steps, run_stop with status success
/// or aborted. Times are those of the measured steps, milliseconds since 1970.
std::string mllog_text(const Json& run);

}  // namespace scalemark
