// The state of a run as a text that monitoring reads (OpenMetrics 1.0; also valid in Prometheus'
// own format).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace scalemark
