// Implements the loop that every measurement shares: clock, deadline and deliberate fault of a
// step, the request to stop, and the observer of displayed steps. The caller defines what a step
// computes.
#pragma once

#include <functional>

#include "comm/rank_group.hpp"
#include "measure/samples.hpp"
#include "measure/stopping.hpp"
#include "rendezvous/start_barrier.hpp"
#include "train/device_backend.hpp"
#include "train/injection.hpp"

namespace scalemark {

/// From here on the stop signals (platform/platform.hpp) set the flag, which starts unset;
/// those that the front door has held back arrive now. Ignored ones stay ignored.
void install_stop_signals();
bool stop_requested();

/// Called on every rank when the results of a step, counted from 1, are known; with a loss this is
/// one step later. Rank 0 prints. `loss` is NaN where steps have none. `step_seconds` holds at
/// least the steps that are known so far.
using StepObserver =
    std::function<void(long step, double loss, const std::vector<double>& step_seconds)>;

/// The result of a step.
struct StepOutcome {
  /// This rank's share of the global mean: a scalar on the device, undefined where steps have none.
  at::Tensor loss;
  double units = 0;         ///< units of this rank's batch, without padding
  double padded_units = 0;  ///< units of this rank's batch, with padding
};

/// Waits at a barrier, if there is one, to start or, at the end of all measuring, to leave. There
/// is no deadline here, since the process that starts the others has one. A stop ends the wait too.
void wait_at(StartBarrier* barrier, RankGroup& group);
void leave(StartBarrier* barrier, RankGroup& group);

/// Observes a loop that runs after the measured one, by wrapping the clocks of the device.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  virtual std::unique_ptr<StepClock> around(std::unique_ptr<StepClock> clock) = 0;
  virtual std::unique_ptr<PhaseClock> around(std::unique_ptr<PhaseClock> clock) = 0;
};

/// Says who ends a loop early. `together`: all ranks stop at the same step, agreed one step late.
/// `alone`: every rank stops by itself; nothing is sent, and steps have no loss.
enum class Stop { together, alone };

/// Runs steps, measures them, and ends early where a rule or a signal requires it.
class StepLoop {
 public:
  StepLoop(DeviceBackend& device, RankGroup& group, const InjectedFault& fault, Stop stop);

  /// Called by the step to enter a phase.
  void enter(StepPhase phase) { phases_->enter(phase); }

  /// Makes `watcher` observe the following runs. `first` is the number of the next step.
  void watch(long first, StepWatcher& watcher) {
    step_ = first;
    watcher_ = &watcher;
  }

  /// Runs up to `steps` steps under the watchdog's phase `phase` (a literal). `step` is given its
  /// number, counted from the first of all runs. Where `barrier` interleaves measurements, the
  /// ranks together wait between parts, after a step on which they agree. The caller sets
  /// wall_seconds.
  Samples run(long steps, const char* phase, StoppingRule rule, const StepObserver& observer,
              const std::function<StepOutcome(long number)>& step, StartBarrier* barrier = nullptr);

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
  std::unique_ptr<PhaseClock> phases_;  ///< phases of the run so far
  StepWatcher* watcher_ = nullptr;      ///< null: nobody
};

}  // namespace scalemark
