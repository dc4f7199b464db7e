// One rank's trace of a few steps: the steps and their phases, operators, buckets as they travel,
// and what was waited for.
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
#include "train/trace/kernel_recorder.hpp"
#include "train/trace/operator_recorder.hpp"

namespace scalemark {

/// Steps of a traced loop before those that are recorded.
inline constexpr long kUnrecordedSteps = 2;

/// Used by the thread of the loop. With a device that works behind the host every step begins when
/// the device has ended the one before, so that its times have a beginning in the host's.
class StepTrace : public StepWatcher {
 public:
  /// Keeps at most `most_spans` spans of operators, and as many of kernels.
  StepTrace(DeviceBackend& device, std::size_t most_spans);

  /// Before and after the traced loop, by all ranks of `group`: measures the clocks and records in
  /// between.
  void begin(RankGroup& group);
  void end(RankGroup& group);
  std::unique_ptr<StepClock> around(std::unique_ptr<StepClock> clock) override;
  std::unique_ptr<PhaseClock> around(std::unique_ptr<PhaseClock> clock) override;
  /// Of the traced loop, after it.
  void add(const std::vector<LoggedOperation>& operations);

  /// After end(): all of it. `samples`: of the traced loop.
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
  std::unique_ptr<KernelRecorder> kernels_;  ///< of a device that works behind the host
  ClockAlignment clocks_;
  RankTrace trace_;                   ///< but for operators
  std::optional<double> step_begin_;  ///< of the step under way
  std::vector<double> step_begins_;   ///< of all
  std::optional<Open> open_;          ///< the phase under way
  double operators_before_ = 0;       ///< operator seconds when it began
  double operators_communicating_ = 0;
};

}  // namespace scalemark
