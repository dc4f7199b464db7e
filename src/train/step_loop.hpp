// The loop that every measurement shares: a clock, a deadline and a deliberate fault a step, the
// wish to stop, and the observer of displayed steps. What a step computes is the caller's.
#pragma once

#include <functional>

#include "comm/rank_group.hpp"
#include "measure/samples.hpp"
#include "measure/stopping.hpp"
#include "rendezvous/start_line.hpp"
#include "train/device_backend.hpp"
#include "train/injection.hpp"

namespace scalemark {

/// Called on every rank when a step of the loop, counted from 1, is known, one with a loss one step
/// later; rank 0 prints. `loss` is NaN where
/// steps have none. `step_seconds` holds at least the steps that are known so far.
using StepObserver =
    std::function<void(long step, double loss, const std::vector<double>& step_seconds)>;

/// What a step hands back.
struct StepOutcome {
  /// This rank's share of the global mean: a scalar on the device; undefined where steps have none.
  at::Tensor loss;
  double units = 0;         ///< of this rank's batch, without padding
  double padded_units = 0;  ///< with it
};

/// Waits at a line, if there is one, to start or, at the end of all measuring, to leave. There is
/// no deadline: who starts the others has one. A stop ends the wait too.
void wait_at(StartLine* line, RankGroup& group);
void leave(StartLine* line, RankGroup& group);

/// Somebody who looks at a loop of its own, after the measured one: clocks around the device's.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  virtual std::unique_ptr<StepClock> around(std::unique_ptr<StepClock> clock) = 0;
  virtual std::unique_ptr<PhaseClock> around(std::unique_ptr<PhaseClock> clock) = 0;
};

/// Who ends a loop early. together: all ranks at the same step, agreed one step late. alone: every
/// rank by itself; nothing is sent, and steps have no loss.
enum class Stop { together, alone };

class StepLoop {
 public:
  StepLoop(DeviceBackend& device, RankGroup& group, const InjectedFault& fault, Stop stop);

  /// For the step: what it does from here on.
  void enter(StepPhase phase) { phases_->enter(phase); }

  /// `first` is the number of the next step; the runs to come are watched.
  void watch(long first, StepWatcher& watcher) {
    step_ = first;
    watcher_ = &watcher;
  }

  /// Up to `steps` steps under the watchdog's phase `phase` (a literal); `step` is given its
  /// number, counted from the first of all runs. Where `line` takes turns, the ranks together make
  /// way between them, after a step that they agree on. wall_seconds is left to the caller.
  Samples run(long steps, const char* phase, StoppingRule rule, const StepObserver& observer,
              const std::function<StepOutcome(long number)>& step, StartLine* line = nullptr);

 private:
  struct Phase;  ///< the state of one run()

  std::vector<double> words(Phase& phase, std::optional<double> loss) const;
  std::optional<StopReason> read(Phase& phase, const std::vector<double>& sums) const;
  void show(Phase& phase, long step, double loss) const;
  void make_way(Phase& phase);

  DeviceBackend& device_;
  RankGroup& group_;
  InjectedFault fault_;
  Stop stop_;
  long step_ = 0;
  std::unique_ptr<PhaseClock> phases_;  ///< of the run so far
  StepWatcher* watcher_ = nullptr;      ///< null: nobody
};

}  // namespace scalemark
