// Maps how a measurement ended to a status and an exit code, and back.
#include "result/outcome.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "result/inference_record.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// `between`: where a signal is heeded.
Outcome outcome_of_loop(StopReason ended_by, const char* between) {
  switch (ended_by) {
    case StopReason::non_finite:
      return {Status::invalid,
              "the loss or a weight is not finite (NaN or Inf): lower --init_learning_rate, or "
              "look for a broken rank"};
    case StopReason::signal:
      return {Status::interrupted, std::string("stopped by a signal ") + between};
    case StopReason::num_batches:
    case StopReason::target_ci:
    case StopReason::max_seconds:
    case StopReason::target_loss:
      break;
  }
  return {};
}

bool is_finite(double value) { return std::isfinite(value); }

}  // namespace

Status status_from(const std::string& word) {
  return from_string<Status>(word).value_or(Status::failed);
}

void set_outcome(Json& record, const Outcome& outcome) {
  record["status"] = to_string(outcome.status);
  record["reason"] = outcome.reason;
}

Outcome outcome_of_run(const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  if (!reports.empty())
    if (Outcome ended = outcome_of_loop(reports.front().samples.stop_reason, "at a step boundary");
        !ended.ok())
      return ended;
  for (const RankReport& report : reports)
    if (!std::ranges::all_of(report.samples.loss, is_finite))
      return {Status::invalid, "the loss is not finite on rank " + std::to_string(report.rank)};
  if (metrics.step_seconds.empty() || !(metrics.wall_seconds > 0) ||
      !std::ranges::all_of(metrics.step_seconds, [](double s) { return is_finite(s) && s > 0; }))
    throw RunError(
        "the run has no measured steps: every rank must report at least one step of more than 0 s");
  return {};
}

Outcome outcome_of_inference(const InferenceMetrics& metrics) {
  Outcome ended = outcome_of_loop(metrics.stop_reason, "between two queries");
  if (ended.ok() && (!(metrics.mean > 0) || !is_finite(metrics.mean)))
    throw RunError("no query was measured on some rank: each must answer at least one");
  return ended;
}

ExitCode exit_code_of(Status status) {
  switch (status) {
    case Status::ok:
      return ExitCode::ok;
    case Status::timeout:
      return ExitCode::timeout;
    case Status::invalid:
    case Status::failed:
    case Status::interrupted:
      break;
  }
  return ExitCode::failed;
}

Status status_of_exit(int exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::ok:
    case ExitCode::regression:  // verdicts of a comparison that itself went well
    case ExitCode::inconclusive:
      return Status::ok;
    case ExitCode::timeout:
      return Status::timeout;
    case ExitCode::usage:
    case ExitCode::failed:
    case ExitCode::result:
    case ExitCode::environment:
      break;
  }
  return Status::failed;  // also of a launcher's own codes
}

}  // namespace scalemark
