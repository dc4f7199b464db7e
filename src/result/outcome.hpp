// What became of a measurement: what ended its loop decides the status of its record, and that the
// exit code of its command. A job that left no record is judged the other way round.
#pragma once

#include <string>

#include "error.hpp"
#include "json.hpp"
#include "measure/samples.hpp"
#include "record/parts.hpp"

namespace scalemark {

struct RankReport;
struct RunMetrics;
struct InferenceMetrics;

/// Returns the status with this name; `failed` for a word that names none.
Status status_from(const std::string& word);

struct Outcome {
  Status status = Status::ok;
  std::string reason = {};  ///< why it is not ok

  bool ok() const { return status == Status::ok; }
  /// What was measured until then is told, as `partial_throughput`.
  bool is_partial() const { return status == Status::interrupted || status == Status::timeout; }
};

/// What became of a measurement after its record was made.
void set_outcome(Json& record, const Outcome& outcome);

/// Returns the outcome of a training run, by what ended its loop and by its numbers: none of a run
/// with a loss that is not finite is published. Throws RunError where it came to its end and has
/// measured nothing.
Outcome outcome_of_run(const std::vector<RankReport>& reports, const RunMetrics& metrics);

/// Returns the outcome of independent replicas: the most severe that happened to any of them.
Outcome outcome_of_inference(const InferenceMetrics& metrics);

/// The exit code of the command that wrote a record of this status.
ExitCode exit_code_of(Status status);

/// Returns the status of a job that could not write its record itself. Any number is legal: a
/// launcher's own codes are `failed`.
Status status_of_exit(int exit_code);

/// Whether an end on which all ranks agree, or that a supervisor finds, leaves a record: with other
/// codes nothing was measured, or no file can be written.
inline bool leaves_a_record(ExitCode code) {
  return code == ExitCode::failed || code == ExitCode::timeout;
}

/// Returns the status of a launch; `stopped`: somebody asked it to end.
inline Status status_of_launch(ExitCode code, bool stopped) {
  return stopped ? Status::interrupted : status_of_exit(static_cast<int>(code));
}

}  // namespace scalemark
