// Says what rank 0 says while a run goes on: tf_cnn_benchmarks' lines on stdout (none with --json),
// and the state for programs. Other ranks are silent.
#pragma once

#include <cstdint>
#include <optional>

#include "record/inference.hpp"
#include "record/run.hpp"
#include "report/console.hpp"
#include "session/live_report.hpp"
#include "session/session.hpp"
#include "train/trainer.hpp"

namespace scalemark {

class StepPrinter {
 public:
  /// `units_per_step` counts the units of all `ranks`.
  StepPrinter(Session& session, int ranks, double units_per_step);
  /// Returns an observer that prints steps. Where steps have no loss, the last column is `p50_ms`,
  /// the median of their times so far.
  StepObserver observer();
  /// Prints the closing lines, or nothing where the run has no throughput.
  void total(const RunResult& run);
  void total(const InferenceResult& inference);

 private:
  void total(const record::Measured& run, std::int64_t steps);

  std::optional<StepLines> lines_;
  std::optional<LiveReport> live_;
  long display_every_;
};

}  // namespace scalemark
