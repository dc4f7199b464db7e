// Records steps, phases and communication of a traced loop.
#include "train/trace/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "measure/clock.hpp"

namespace scalemark {
namespace {

constexpr int kLoopThread = 1;
constexpr int kStreamWaits = 1000;  ///< thread number for a device that works behind the host
constexpr int kFirstLane = 1001;

std::string carried_by(const OperationLoad& load) {
  if (load.bucket < 0) return "operation";
  const char* const what = load.of_table                                   ? " (embedding)"
                           : load.collective == Collective::allgather      ? " (gathered)"
                           : load.collective == Collective::reduce_scatter ? " (scattered)"
                                                                           : "";
  return fmt::format("bucket {}{}", load.bucket, what);
}

}  // namespace

/// Wraps the clock of the device and records the boundaries of steps.
class StepTrace::WatchedSteps : public StepClock {
 public:
  WatchedSteps(StepTrace& trace, std::unique_ptr<StepClock> clock)
      : trace_(trace), clock_(std::move(clock)) {}
  void mark() override {
    trace_.step_boundary();
    clock_->mark();
  }
  void pause() override { clock_->pause(); }
  const std::vector<double>& seconds() override { return clock_->seconds(); }

 private:
  StepTrace& trace_;
  std::unique_ptr<StepClock> clock_;
};

class StepTrace::WatchedPhases : public PhaseClock {
 public:
  WatchedPhases(StepTrace& trace, std::unique_ptr<PhaseClock> clock)
      : trace_(trace), clock_(std::move(clock)) {}
  void enter(StepPhase phase) override {
    trace_.enter(phase);
    clock_->enter(phase);
  }
  void pause() override {
    trace_.pause();
    clock_->pause();
  }
  const PhaseSeconds& seconds() const override { return clock_->seconds(); }

 private:
  StepTrace& trace_;
  std::unique_ptr<PhaseClock> clock_;
};

StepTrace::StepTrace(DeviceBackend& device, std::size_t most_spans)
    : device_(device), most_spans_(most_spans) {}

void StepTrace::begin(RankGroup& group) {
  group.watchdog().enter("clock offsets");
  clocks_.before = measure_clock_offset(group);
  group.barrier();
  if (device_.works_behind_host()) kernels_ = std::make_unique<KernelRecorder>(most_spans_);
  recorder_ = std::make_unique<OperatorRecorder>(most_spans_);
}

void StepTrace::end(RankGroup& group) {
  recorder_->take(trace_);
  if (kernels_) kernels_->take(trace_);
  group.watchdog().enter("clock offsets");
  group.barrier();
  clocks_.after = measure_clock_offset(group);
}

std::unique_ptr<StepClock> StepTrace::around(std::unique_ptr<StepClock> clock) {
  return std::make_unique<WatchedSteps>(*this, std::move(clock));
}

std::unique_ptr<PhaseClock> StepTrace::around(std::unique_ptr<PhaseClock> clock) {
  return std::make_unique<WatchedPhases>(*this, std::move(clock));
}

void StepTrace::add_span(const SpanLabel& label, int thread, double begin, double end,
                         std::int64_t amount) {
  trace_.spans.push_back(
      {static_cast<std::uint32_t>(trace_.labels.size()), thread, begin, end, amount});
  trace_.labels.push_back(label);
}

/// Divides a phase that crosses the boundary, so that phases lie within steps.
void StepTrace::step_boundary() {
  if (device_.works_behind_host()) device_.synchronize();
  const double now = steady_seconds();
  close_phase(now);
  if (step_begin_)
    add_span({fmt::format("step {}", step_begins_.size()), "step", "", ""}, kLoopThread,
             *step_begin_, now);
  step_begin_ = now;
  step_begins_.push_back(now);
}

/// Records the end of a phase. Before the first step nothing is recorded.
void StepTrace::close_phase(double now) {
  if (!open_) return;
  if (step_begin_)
    add_span({kStepPhases[static_cast<std::size_t>(open_->phase)], "phase", "", ""}, kLoopThread,
             open_->begin, now);
  open_->begin = now;
}

void StepTrace::enter(StepPhase phase) {
  const double now = steady_seconds();
  close_phase(now);
  const double operators = recorder_->operator_seconds();
  if (open_ && open_->phase == StepPhase::communication)
    operators_communicating_ += operators - operators_before_;
  operators_before_ = operators;
  recorder_->set_optimizer(phase == StepPhase::optimizer);
  open_ = Open{phase, now};
}

/// Ends the loop after a boundary. The current phase belongs to no step.
void StepTrace::pause() { open_.reset(); }

/// Adds buckets. They overlap in time, so each goes into the first lane that is free.
void StepTrace::add(const std::vector<LoggedOperation>& operations) {
  const bool behind = device_.works_behind_host();
  std::vector<LoggedOperation> sorted = operations;
  for (LoggedOperation& operation : sorted) {
    // Seconds of a device count from the begin of the step.
    const double origin = behind ? step_begins_.at(operation.step) : 0;
    for (double* const time : {&operation.times.posted, &operation.times.done,
                               &operation.times.wait_begin, &operation.times.wait_end})
      *time += origin;
  }
  std::ranges::sort(sorted, {}, [](const LoggedOperation& o) { return o.times.posted; });
  std::vector<double> busy_until;
  for (const LoggedOperation& operation : sorted) {
    const OperationLoad& load = operation.load;
    const OperationTimes& times = operation.times;
    auto lane = std::ranges::find_if(busy_until, [&](double end) { return end <= times.posted; });
    if (lane == busy_until.end()) lane = busy_until.insert(lane, 0);
    *lane = times.done;
    add_span({carried_by(load), "bucket", "", "bytes"},
             kFirstLane + static_cast<int>(lane - busy_until.begin()), times.posted, times.done,
             load.bytes);
    if (times.wait_end > times.wait_begin)
      add_span({"wait for " + carried_by(load), "wait", "", ""},
               behind ? kStreamWaits : kLoopThread, times.wait_begin, times.wait_end);
  }
  for (std::size_t i = 0; i < busy_until.size(); ++i)
    trace_.threads[kFirstLane + static_cast<int>(i)] = fmt::format("communication {}", i + 1);
  if (behind && !sorted.empty()) trace_.threads[kStreamWaits] = "stream waits for gradients";
}

RankTrace StepTrace::take(const Samples& samples) {
  constexpr auto communication = static_cast<std::size_t>(StepPhase::communication);
  trace_.steps = static_cast<std::int64_t>(samples.step_seconds.size());
  for (const double seconds : samples.step_seconds) trace_.step_seconds += seconds;
  trace_.communication_seconds =
      std::max(0., samples.phase_seconds[communication] - operators_communicating_);
  return std::move(trace_);
}

}  // namespace scalemark
