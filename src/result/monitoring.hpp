// A run as texts that other tools read: its state for monitoring (OpenMetrics 1.0; also valid in
// Prometheus' own format), and its steps as lines of MLPerf's logging, which that project's tools
// and many dashboards read: ":::MLLOG {...}", keys of https://github.com/mlcommons/logging.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/run.hpp"

namespace scalemark {

struct LiveState {
  /// The labels of every sample: command, model, precision, ranks, unit, label.
  std::vector<std::pair<std::string, std::string>> labels;
  bool running = false;
  long steps = 0, planned_steps = 0;      ///< measured ones
  double elapsed_seconds = 0;             ///< of these
  std::optional<double> throughput;       ///< of the steps since the last state
  std::optional<double> mean_throughput;  ///< of all
  std::optional<double> step_seconds;     ///< median of the steps since the last state
  std::optional<double> loss;
};

/// What is unknown has no sample. Ends with "# EOF".
std::string openmetrics_text(const LiveState& state);

/// Puts the text in place of the file at once: a reader sees the old text or the new. ResultError
/// where that fails. No fsync: after a crash of the machine there is nothing to monitor.
void replace_text(const std::filesystem::path& path, const std::string& text);

/// What was run, run_start, a block with tracked_stats (throughput in samples a
/// second, step_seconds) and train_loss every `display_every` steps, run_stop with status success
/// or aborted. Times are those of the measured steps, milliseconds since 1970.
std::string mllog_text(const RunResult& run);

}  // namespace scalemark
