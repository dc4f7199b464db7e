// A run as lines of MLPerf's logging, which its tools and many dashboards read: ":::MLLOG {...}",
// keys of https://github.com/mlcommons/logging.
#pragma once

#include <string>

#include "record/run.hpp"

namespace scalemark {

/// What was run, run_start, a block with tracked_stats (throughput in samples a
/// second, step_seconds) and train_loss every `display_every` steps, run_stop with status success
/// or aborted. Times are those of the measured steps, milliseconds since 1970.
std::string mllog_text(const RunResult& run);

}  // namespace scalemark
