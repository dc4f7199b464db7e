// Prints the lines of a run at rank 0 and feeds the live report.
#include "session/step_printer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "streams.hpp"

namespace scalemark {

StepPrinter::StepPrinter(Session& session, int ranks, double units_per_step)
    : display_every_(session.config().display_every) {
  if (!session.is_root()) return;
  if (uses_event_lines() || session.config().openmetrics)
    live_.emplace(session, ranks, units_per_step);
  if (session.config().json) return;
  const bool timestamps = session.config().timestamps;
  lines_.emplace(
      unit_of(session.config()), units_per_step,
      [timestamps](const std::string& line) {
        print_view((timestamps ? utc_timestamp() + " " : "") + line + "\n");
      },
      session.loaded.command == Command::infer ? "p50_ms" : "total_loss");
}

StepObserver StepPrinter::observer() {
  if (!lines_ && !live_) return nullptr;
  if (lines_) lines_->header();
  return [this](long step, double loss, const std::vector<double>& seconds) {
    if (live_) live_->step(step, loss, seconds);
    if (lines_ && (step == 1 || step % display_every_ == 0))
      lines_->step(step, std::isnan(loss) ? 1000 * median(seconds) : loss, seconds);
  };
}

void StepPrinter::total(const RunResult& run) { total(run, run.steps.value_or(0)); }

void StepPrinter::total(const InferenceResult& inference) {
  total(inference, inference.ranks.empty() ? 0 : inference.ranks.front().queries);
}

void StepPrinter::total(const record::Measured& run, std::int64_t steps) {
  if (!run.throughput) return;
  if (live_) live_->end(run, steps);
  if (lines_) lines_->total(run.throughput->mean);
}

}  // namespace scalemark
