// No barrier, no wait but for gradients: what ranks agree on, they agree on one step late.
#include "train/step_loop.hpp"

#include <cmath>
#include <limits>

#include "measure/clock.hpp"
#include "train/signals.hpp"

namespace scalemark {
namespace {

/// What a rank says after a step; where ranks stop together, all read the sums one step later.
enum Word { signal, target_ci, max_seconds, non_finite, loss_share, losses, word_count };

}  // namespace

void wait_at(StartLine* line, RankGroup& group) {
  if (!line) return;
  line->wait([&] {
    group.watchdog().enter("start line");
    return stop_requested();
  });
}

struct StepLoop::Phase {
  Phase(DeviceBackend& device, StoppingRule& stopping_rule, const StepObserver& step_observer)
      : clock(device.make_step_clock()),
        reader(device.make_scalar_reader()),
        rule(stopping_rule),
        observer(step_observer) {}

  std::unique_ptr<StepClock> clock;
  std::unique_ptr<ScalarReader> reader;
  std::optional<AgreedStop> agreed;  ///< of ranks that stop together
  StoppingRule& rule;
  const StepObserver& observer;
  double start = steady_seconds();
  Samples samples;
};

StepLoop::StepLoop(DeviceBackend& device, RankGroup& group, const InjectedFault& fault, Stop stop,
                   long display_every)
    : device_(device), group_(group), fault_(fault), stop_(stop), display_every_(display_every) {}

Samples StepLoop::run(long steps, const char* phase_name, StoppingRule rule,
                      const StepObserver& observer,
                      const std::function<StepOutcome(long number)>& step) {
  Phase phase(device_, rule, observer);
  if (stop_ == Stop::together) phase.agreed.emplace(group_);
  std::optional<StopReason> stop;
  phase.clock->mark();
  for (long i = 0; i < steps && !stop; ++i, ++step_) {
    group_.watchdog().enter(phase_name, step_);
    fault_.before_step(step_);
    const StepOutcome done = step(step_);
    const auto loss = done.loss.defined() ? phase.reader->exchange(done.loss) : std::nullopt;
    const auto posted = words(phase, loss);
    const double before_exchange = steady_seconds();
    stop = read(phase, phase.agreed ? phase.agreed->exchange(posted) : posted);
    phase.samples.wait_seconds.push_back(steady_seconds() - before_exchange + done.wait_seconds);
    phase.samples.communication_seconds += done.communication_seconds;
    phase.samples.units.push_back(done.units);
    phase.samples.padded_units += done.padded_units;
    phase.clock->mark();
    if (!done.loss.defined()) show(phase, i + 1, std::numeric_limits<double>::quiet_NaN());
  }
  if (const auto late = phase.reader->finish()) {
    const auto reason = read(phase, phase.agreed->exchange(words(phase, late)));
    if (!stop) stop = reason;
  }
  const auto reason = phase.agreed ? read(phase, phase.agreed->finish()) : std::nullopt;
  // A wish to stop that came with the last step changes nothing; a loss that is not finite does.
  if (!stop && reason == StopReason::non_finite) stop = reason;
  phase.samples.stop_reason = stop.value_or(StopReason::num_batches);
  device_.synchronize();
  phase.samples.step_seconds = phase.clock->seconds();
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
    const auto reason = phase.rule.check(phase.clock->seconds(), steady_seconds() - phase.start);
    words[target_ci] = reason == StopReason::target_ci;
    words[max_seconds] = reason == StopReason::max_seconds;
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
  if (sums[signal] > 0) return StopReason::signal;
  // MPI gives all ranks the same sums, so that they decide alike.
  if (const auto reason = phase.rule.check_loss(phase.samples.loss)) return reason;
  if (sums[target_ci] > 0) return StopReason::target_ci;
  if (sums[max_seconds] > 0) return StopReason::max_seconds;
  return std::nullopt;
}

void StepLoop::show(Phase& phase, long step, double loss) const {
  const bool displayed = step == 1 || step % display_every_ == 0;
  if (phase.observer && displayed) phase.observer(step, loss, phase.clock->seconds());
}

}  // namespace scalemark
