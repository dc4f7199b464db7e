// Records one rank's trace of a few steps: the steps and their phases, operators, buckets in
// flight, and what was waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "comm/clock_offset.hpp"
#include "comm/communication_log.hpp"
#include "measure/rank_trace.hpp"
#include "measure/samples.hpp"
#include "train/step_loop.hpp"
#include "train/trace/recorders.hpp"

namespace scalemark {

/// A traced loop has this many steps before those that are recorded.
inline constexpr long kUnrecordedSteps = 2;

/// Records a traced loop on the thread of that loop. With a device that works behind the host,
/// every step begins when the device has finished the one before, so that the times of the step
/// have an origin on the host's clock.
class StepTrace : public StepWatcher {
 public:
  /// Keeps at most `most_spans` spans of operators, and as many of kernels.
  StepTrace(DeviceBackend& device, std::size_t most_spans);

  /// Measures the clocks before and after the traced loop, and records in between. All ranks of
  /// `group` call both functions.
  void begin(RankGroup& group);
  void end(RankGroup& group);
  std::unique_ptr<StepClock> around(std::unique_ptr<StepClock> clock) override;
  std::unique_ptr<PhaseClock> around(std::unique_ptr<PhaseClock> clock) override;
  /// Adds the communication of the traced loop, after it.
  void add(const std::vector<LoggedOperation>& operations);

  /// Returns the whole trace, after end(). `samples` are those of the traced loop.
  RankTrace take(const Samples& samples);
  const ClockAlignment& clocks() const { return clocks_; }

 private:
  class WatchedSteps;
  class WatchedPhases;
  struct Open {
    StepPhase phase;
    double begin;
  };

  void step_boundary();
  void enter(StepPhase phase);
  void pause();
  void close_phase(double now);
  void add_span(const SpanLabel& label, int thread, double begin, double end,
                std::int64_t amount = 0);

  DeviceBackend& device_;
  std::size_t most_spans_;
  std::unique_ptr<OperatorRecorder> recorder_;
  std::unique_ptr<KernelRecorder> kernels_;  ///< set for a device that works behind the host
  ClockAlignment clocks_;
  RankTrace trace_;                   ///< but for operators
  std::optional<double> step_begin_;  ///< begin of the current step
  std::vector<double> step_begins_;   ///< begins of all steps
  std::optional<Open> open_;          ///< the phase under way
  double operators_before_ = 0;       ///< operator seconds when it began
  double operators_communicating_ = 0;
};

}  // namespace scalemark
