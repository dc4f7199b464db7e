// What rank 0 says while a run goes on: tf_cnn_benchmarks' lines on stdout, none with --json, and
// what programs learn. Other ranks are silent.
#pragma once

#include <optional>

#include "report/console.hpp"
#include "session/live_report.hpp"
#include "session/session.hpp"
#include "train/trainer.hpp"

namespace scalemark {

class StepPrinter {
 public:
  /// `units_per_step`: of all `ranks`.
  StepPrinter(Session& session, int ranks, double units_per_step);
  /// Of steps without a loss the last column is `p50_ms`: the median of their times so far.
  StepObserver observer();
  /// The closing lines, from the record; nothing where the run has no throughput.
  void total(const Json& record);

 private:
  std::optional<StepLines> lines_;
  std::optional<LiveReport> live_;
  long display_every_;
};

}  // namespace scalemark
