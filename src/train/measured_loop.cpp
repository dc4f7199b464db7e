// The measured loop: no barrier, no wait but for gradients. All ranks agree, one step late, on the
// loss and on whether to stop.
#include "train/measured_loop.hpp"

#include <chrono>
#include <cmath>
#include <limits>

#include "train/clipping.hpp"

namespace scalemark {
namespace {

using Steady = std::chrono::steady_clock;

double seconds_since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

/// What every rank posts after a step; all ranks read the sums one step later.
enum Word { signal, target_ci, max_seconds, non_finite, loss_sum, loss_count, word_count };

}  // namespace

struct MeasuredLoop::Phase {
  Phase(DeviceBackend& device, RankGroup& group, StoppingRule& stopping_rule,
        const StepObserver& step_observer)
      : clock(device.make_step_clock()),
        reader(device.make_scalar_reader()),
        agreed(group),
        rule(stopping_rule),
        observer(step_observer) {}

  std::unique_ptr<StepClock> clock;
  std::unique_ptr<ScalarReader> reader;
  AgreedStop agreed;
  StoppingRule& rule;
  const StepObserver& observer;
  Steady::time_point start = Steady::now();
  Samples samples;
};

MeasuredLoop::MeasuredLoop(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator,
                           const InjectedFault& fault)
    : trainer_(trainer),
      group_(group),
      reducer_(communicator, trainer.parameters->gradient_buffers(),
               trainer.parameters->parameters_in(), trainer.config.overlap),
      fault_(fault),
      learning_rate_(trainer.config, trainer.plan.global_batch_size) {
  const double mine = trainer.batches.front().loss_count;
  const double all = group.all_sum({mine}).front();
  // Without communication each rank trains by itself, on its own mean loss.
  const double count = communicator.name() == "none" ? mine : all;
  loss_scale_ = at::full({}, 1 / count, at::TensorOptions().device(trainer.device.device()));
  trainer.parameters->set_on_ready(
      [this](int bucket) { reducer_.add(bucket, trainer_.device.stream()); });
}

Samples MeasuredLoop::run(long steps, const char* phase_name, StoppingRule rule,
                          const StepObserver& observer) {
  Phase phase(trainer_.device, group_, rule, observer);
  std::optional<StopReason> stop;
  phase.clock->mark();
  for (long i = 0; i < steps && !stop; ++i, ++step_) {
    group_.watchdog().enter(phase_name, step_);
    fault_.before_step(step_);
    const at::Tensor loss = trainer_.config.forward_only ? forward_step() : train_step();
    const auto posted = words(phase, phase.reader->exchange(loss));
    const auto before_exchange = Steady::now();
    stop = read(phase, phase.agreed.exchange(posted));
    phase.samples.wait_seconds.push_back(seconds_since(before_exchange) +
                                         reducer_.last_wait_seconds());
    phase.samples.communication_seconds += reducer_.last_communication_seconds();
    phase.clock->mark();
  }
  if (const auto late = phase.reader->finish()) {
    const auto reason = read(phase, phase.agreed.exchange(words(phase, late)));
    if (!stop) stop = reason;
  }
  const auto reason = read(phase, phase.agreed.finish());
  // A wish to stop that came with the last step changes nothing; a loss that is not finite does.
  if (!stop && reason == StopReason::non_finite) stop = reason;
  phase.samples.stop_reason = stop.value_or(StopReason::num_batches);
  trainer_.device.synchronize();
  phase.samples.step_seconds = phase.clock->seconds();
  return std::move(phase.samples);
}

std::size_t MeasuredLoop::turn() const {
  return static_cast<std::size_t>(step_) % trainer_.batches.size();
}

at::Tensor MeasuredLoop::train_step() {
  const auto& micro_batches = trainer_.micro_batches[turn()];
  trainer_.optimizer->set_learning_rate(learning_rate_.at(step_));
  at::Tensor sum;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    trainer_.parameters->begin_pass(i == 0, i + 1 == micro_batches.size());
    at::Tensor loss = trainer_.model->loss_sum(micro_batches[i]);
    if (fault_.nan_loss(step_)) loss = loss * std::numeric_limits<double>::quiet_NaN();
    loss.backward(loss_scale_);  // in the last pass calls reducer_.add() as gradients arrive
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  reducer_.finalize(trainer_.device.stream());
  if (trainer_.config.clip_norm)
    clip_gradients(trainer_.parameters->buckets(), *trainer_.config.clip_norm);
  trainer_.optimizer->begin_step();
  for (Bucket& bucket : trainer_.parameters->buckets()) trainer_.optimizer->update(bucket);
  return sum;
}

at::Tensor MeasuredLoop::forward_step() {
  const at::NoGradGuard no_grad;
  at::Tensor loss = trainer_.model->loss_sum(trainer_.batches[turn()]);
  if (fault_.nan_loss(step_)) loss = loss * std::numeric_limits<double>::quiet_NaN();
  return loss;
}

std::vector<double> MeasuredLoop::words(Phase& phase, std::optional<double> loss) const {
  std::vector<double> words(word_count, 0.);
  words[signal] = stop_requested();
  if (loss) {
    const bool finite = std::isfinite(*loss);
    words[non_finite] = !finite;
    words[loss_sum] = finite ? *loss : 0;
    words[loss_count] = trainer_.batches.front().loss_count;
  }
  if (group_.rank() == 0) {
    const auto reason = phase.rule.check(phase.clock->seconds(), seconds_since(phase.start));
    words[target_ci] = reason == StopReason::target_ci;
    words[max_seconds] = reason == StopReason::max_seconds;
  }
  return words;
}

std::optional<StopReason> MeasuredLoop::read(Phase& phase, const std::vector<double>& sums) const {
  if (sums.empty()) return std::nullopt;
  if (sums[non_finite] > 0) return StopReason::non_finite;
  if (sums[loss_count] > 0) {
    phase.samples.loss.push_back(sums[loss_sum] / sums[loss_count]);
    const long step = static_cast<long>(phase.samples.loss.size());
    const bool displayed = step == 1 || step % trainer_.config.display_every == 0;
    if (phase.observer && displayed)
      phase.observer(step, phase.samples.loss.back(), phase.clock->seconds());
  }
  if (sums[signal] > 0) return StopReason::signal;
  if (sums[target_ci] > 0) return StopReason::target_ci;
  if (sums[max_seconds] > 0) return StopReason::max_seconds;
  return std::nullopt;
}

Samples Trainer::measure(RankGroup& group, Communicator& communicator,
                         const StepObserver& observer) {
  Impl& trainer = *impl_;
  trainer.restart();
  MeasuredLoop loop(trainer, group, communicator,
                    InjectedFault(trainer.config.inject, trainer.rank));
  const Samples warm_up = loop.run(trainer.config.num_warmup_batches, "warm-up",
                                   StoppingRule(std::nullopt, std::nullopt), nullptr);
  Samples samples;
  samples.stop_reason = warm_up.stop_reason;
  if (warm_up.stop_reason == StopReason::num_batches) {
    group.barrier();
    const auto start = Steady::now();
    samples =
        loop.run(trainer.config.num_batches, "step",
                 StoppingRule(trainer.config.target_ci, trainer.config.max_seconds), observer);
    group.watchdog().enter("end of measured loop");
    group.barrier();
    samples.wall_seconds = seconds_since(start);
  }
  trainer.parameters->set_on_ready([](int) {});
  const double broken = trainer.parameters->weights_are_finite() ? 0 : 1;
  if (group.all_sum({broken}).front() > 0) samples.stop_reason = StopReason::non_finite;
  return samples;
}

double Trainer::calibrate(RankGroup& group) {
  Impl& trainer = *impl_;
  trainer.restart();
  const auto communicator = make_communicator(CommunicatorKind::none, group, -1);
  MeasuredLoop loop(trainer, group, *communicator, InjectedFault());
  const Samples samples =
      loop.run(2, "calibration", StoppingRule(std::nullopt, std::nullopt), nullptr);
  trainer.parameters->set_on_ready([](int) {});
  const double mine = samples.step_seconds.empty() ? 0 : samples.step_seconds.back();
  return group.all_sum({mine}).front() / group.size();
}

}  // namespace scalemark
