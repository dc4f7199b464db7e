// Implements the loop of steps. It has no barrier; what ranks agree on, they agree on one step
// late.
#include "train/step_loop.hpp"

#include <cmath>
#include <csignal>
#include <limits>

#include "measure/clock.hpp"
#include "platform/platform.hpp"

namespace scalemark {

namespace {

volatile std::sig_atomic_t stop_flag = 0;
extern "C" void request_stop(int) { stop_flag = 1; }

}  // namespace

void install_stop_signals() {
  stop_flag = 0;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  for (const int signal : kStopSignals) {
    action.sa_handler = is_ignored(signal) ? SIG_IGN : request_stop;
    // A second Ctrl-C ends the process at once.
    action.sa_flags = signal == SIGINT ? static_cast<int>(SA_RESTART | SA_RESETHAND) : SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
  const sigset_t held = stop_signal_set();
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

bool stop_requested() { return stop_flag != 0; }

namespace {

/// The values that a rank posts after a step. Where ranks stop together, all read the sums one step
/// later.
enum Word {
  signal,
  target_ci,
  max_seconds,
  non_finite,
  loss_share,
  losses,
  slice_over,
  word_count
};

/// Returns a function that says whether to stop waiting. It also keeps the watchdog from expiring.
std::function<bool()> leaving(RankGroup& group) {
  return [&group] {
    group.watchdog().enter("start barrier");
    return stop_requested();
  };
}

}  // namespace

void wait_at(StartBarrier* barrier, RankGroup& group) {
  if (barrier) barrier->wait(leaving(group));
}

void leave(StartBarrier* barrier, RankGroup& group) {
  if (barrier) barrier->end(leaving(group));
}

struct StepLoop::Phase {
  Phase(DeviceBackend& device, StoppingRule& stopping_rule, const StepObserver& step_observer,
        StartBarrier* start_barrier, StepWatcher* watcher)
      : clock(device.make_step_clock()),
        reader(device.make_scalar_reader()),
        rule(stopping_rule),
        observer(step_observer),
        barrier(start_barrier && start_barrier->interleaved() ? start_barrier : nullptr) {
    if (watcher) clock = watcher->around(std::move(clock));
    samples.began = start;
  }

  double seconds() const { return steady_seconds() - start - samples.paused_seconds; }

  std::unique_ptr<StepClock> clock;
  std::unique_ptr<ScalarReader> reader;
  std::optional<AgreedStop> agreed;  ///< set where ranks stop together
  StoppingRule& rule;
  const StepObserver& observer;
  StartBarrier* barrier;  ///< of an interleaved measurement; may be null
  double start = steady_seconds(), slice_start = start;
  bool slice_is_over = false, said_so = false;
  Samples samples;
};

StepLoop::StepLoop(DeviceBackend& device, RankGroup& group, const InjectedFault& fault, Stop stop)
    : device_(device), group_(group), fault_(fault), stop_(stop) {}

Samples StepLoop::run(long steps, const char* phase_name, StoppingRule rule,
                      const StepObserver& observer,
                      const std::function<StepOutcome(long number)>& step, StartBarrier* barrier) {
  Phase phase(device_, rule, observer, barrier, watcher_);
  if (stop_ == Stop::together) phase.agreed.emplace(group_);
  std::optional<StopReason> stop;
  phases_ = device_.make_phase_clock();
  if (watcher_) phases_ = watcher_->around(std::move(phases_));
  phases_->enter(StepPhase::rest);
  phase.clock->mark();
  for (long i = 0; i < steps && !stop; ++i, ++step_) {
    group_.watchdog().enter(phase_name, step_);
    fault_.before_step(step_, device_.device());
    const StepOutcome done = step(step_);
    phases_->enter(StepPhase::agreement);
    const auto loss = done.loss.defined() ? phase.reader->exchange(done.loss) : std::nullopt;
    const auto posted = words(phase, loss);
    const double before_exchange = steady_seconds();
    stop = read(phase, phase.agreed ? phase.agreed->exchange(posted) : posted);
    // A device that works behind the host continues to compute meanwhile.
    phase.samples.wait_seconds.push_back(
        device_.works_behind_host() ? 0 : steady_seconds() - before_exchange);
    phase.samples.units.push_back(done.units);
    phase.samples.padded_units += done.padded_units;
    phases_->enter(StepPhase::rest);
    phase.clock->mark();
    if (!done.loss.defined()) show(phase, i + 1, std::numeric_limits<double>::quiet_NaN());
    if (phase.slice_is_over && !stop && i + 1 < steps) make_way(phase);
  }
  phases_->pause();
  if (const auto late = phase.reader->finish()) {
    const auto reason = read(phase, phase.agreed->exchange(words(phase, late)));
    if (!stop) stop = reason;
  }
  const auto reason = phase.agreed ? read(phase, phase.agreed->finish()) : std::nullopt;
  // A request to stop that came with the last step changes nothing; a loss that is not finite does.
  if (!stop && reason == StopReason::non_finite) stop = reason;
  phase.samples.stop_reason = stop.value_or(StopReason::num_batches);
  device_.synchronize();
  if (phase.barrier) ++phase.samples.slices;
  phase.samples.step_seconds = phase.clock->seconds();
  phase.samples.phase_seconds = phases_->seconds();
  return std::move(phase.samples);
}

std::vector<double> StepLoop::words(Phase& phase, std::optional<double> loss) const {
  std::vector<double> words(word_count, 0.);
  words[signal] = stop_requested();
  if (loss) {
    const bool finite = std::isfinite(*loss);
    words[non_finite] = !finite;
    words[loss_share] = finite ? *loss : 0;
    words[losses] = 1;
  }
  if (group_.rank() == 0 || stop_ == Stop::alone) {
    const auto reason = phase.rule.check(phase.clock->seconds(), phase.seconds());
    words[target_ci] = reason == StopReason::target_ci;
    words[max_seconds] = reason == StopReason::max_seconds;
    // This is posted once in each part of an interleaved loop. Ranks read it after the next step, a
    // single rank at once.
    if (phase.barrier && !phase.said_so && steady_seconds() - phase.slice_start > kSliceSeconds) {
      words[slice_over] = phase.said_so = true;
      phase.slice_is_over = group_.size() == 1;
    }
  }
  return words;
}

std::optional<StopReason> StepLoop::read(Phase& phase, const std::vector<double>& sums) const {
  if (sums.empty()) return std::nullopt;
  if (sums[non_finite] > 0) return StopReason::non_finite;
  if (sums[losses] > 0) {
    auto& trace = phase.samples.loss;
    trace.push_back(sums[loss_share]);
    show(phase, static_cast<long>(trace.size()), trace.back());
  }
  if (sums[slice_over] > 0) phase.slice_is_over = true;
  if (sums[signal] > 0) return StopReason::signal;
  // MPI gives all ranks the same sums, so they decide alike.
  if (const auto reason = phase.rule.check_loss(phase.samples.loss)) return reason;
  if (sums[target_ci] > 0) return StopReason::target_ci;
  if (sums[max_seconds] > 0) return StopReason::max_seconds;
  return std::nullopt;
}

void StepLoop::make_way(Phase& phase) {
  device_.synchronize();
  phases_->pause();
  phase.clock->pause();
  const double pause_start = steady_seconds();
  wait_at(phase.barrier, group_);
  phase.slice_start = steady_seconds();
  phase.samples.paused_seconds += phase.slice_start - pause_start;
  ++phase.samples.slices;
  phase.slice_is_over = phase.said_so = false;
  phases_->enter(StepPhase::rest);
  phase.clock->mark();
}

void StepLoop::show(Phase& phase, long step, double loss) const {
  if (phase.observer) phase.observer(step, loss, phase.clock->seconds());
}

}  // namespace scalemark
