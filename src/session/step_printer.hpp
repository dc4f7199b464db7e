// tf_cnn_benchmarks' lines on rank 0's stdout while a run goes on; silent on other ranks and with
// --json.
#pragma once

#include <optional>

#include "report/console.hpp"
#include "session/session.hpp"
#include "train/trainer.hpp"

namespace scalemark {

class StepPrinter {
 public:
  StepPrinter(const Session& session, double units_per_step);
  /// Of steps without a loss the last column is `p50_ms`: the median of their times so far.
  StepObserver observer();
  /// The closing lines, from the record; nothing where the run has no throughput.
  void total(const Json& record);

 private:
  std::optional<StepLines> lines_;
};

}  // namespace scalemark
