// Implements the measured loop. It has no barrier and waits only for gradients. All ranks agree,
// one step late, on the loss and on whether to stop.
#include "train/measured_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "error.hpp"
#include "measure/clock.hpp"
#include "train/optimizer.hpp"

namespace scalemark {

MeasuredLoop::MeasuredLoop(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator,
                           const InjectedFault& fault)
    : trainer_(trainer),
      reducer_(make_step_reducer(trainer, group, communicator)),
      asynchronous_(dynamic_cast<AsynchronousReducer*>(reducer_.get())),
      fault_(fault),
      loop_(trainer.device, group, fault, Stop::together),
      learning_rate_(trainer.config, trainer.plan.global_batch_size),
      scaler_(trainer.config, trainer.device.device()),
      input_(make_input_pipeline(trainer.config.input, trainer.device, trainer.batches,
                                 trainer.micro_batches)) {
  std::vector<double> mine;
  for (const Batch& batch : trainer.batches) mine.push_back(batch.loss_count);
  const std::vector<double> all = group.all_sum(mine);
  // Without communication each rank trains by itself, on its own mean loss.
  const bool alone = !communicator.moves_data();
  const auto on_device = at::TensorOptions().device(trainer.device.device());
  for (std::size_t i = 0; i < all.size(); ++i) {
    gradient_scale_.push_back(at::full({}, 1 / (alone ? mine : all)[i], on_device));
    loss_share_.push_back(at::full({}, 1 / all[i], on_device));
  }
  not_updated_.resize(trainer.parameters->buckets().size());
  if (trainer.parameters->division().divides()) {
    trainer.optimizer->set_over_shards(
        [this](const at::Tensor& value) { return reducer_->sum_over_shards(value); });
    // Own blocks in place of the others' make another network in every step, which would diverge.
    learns_ = !alone && trainer.config.leave_out == LeaveOut::none;
  }
  reducer_->set_on_wait(
      [this](bool begins) { loop_.enter(begins ? StepPhase::communication : phase_); });
  if (!asynchronous_) return;
  trainer.parameters->set_on_use([this](int bucket) {
    complete_update(static_cast<std::size_t>(bucket), StepPhase::forward);
  });
}

MeasuredLoop::~MeasuredLoop() {
  trainer_.optimizer->set_over_shards({});
  if (asynchronous_) trainer_.parameters->set_on_use({});
}

Samples MeasuredLoop::run(long steps, const char* phase, StoppingRule rule,
                          const StepObserver& observer, StartBarrier* barrier) {
  input_->restart();
  const auto step = [&](long number) {
    enter(StepPhase::input);
    const std::size_t turn = static_cast<std::size_t>(number) % trainer_.batches.size();
    const std::vector<Batch>& micro_batches = input_->take(number);
    const at::Tensor loss = trainer_.config.forward_only
                                ? forward_step(number, micro_batches.front())
                                : train_step(number, turn, micro_batches);
    enter(StepPhase::checkpoint);
    after_step_(number);
    enter(StepPhase::rest);
    const Batch& batch = trainer_.batches[turn];
    return StepOutcome{loss * loss_share_[turn], batch.units, batch.padded_units};
  };
  Samples samples = loop_.run(steps, phase, std::move(rule), observer, step, barrier);
  settle();
  if (asynchronous_) trainer_.device.synchronize();
  add_communication(samples);
  samples.input = input_->samples();
  if (scaler_.enabled()) samples.loss_scaling = scaler_.report();
  return samples;
}

void MeasuredLoop::add_communication(Samples& samples) {
  ReducerSamples taken = reducer_->take_samples();
  traffic_ = taken.traffic;
  samples.embedding = std::move(taken.embedding);
  CommunicationTimes& times = taken.times;
  if (recorder_) {  // operations of a recording have no times
    times = {};
    times.wait_seconds.assign(samples.wait_seconds.size(),
                              std::numeric_limits<double>::quiet_NaN());
  }
  const std::size_t steps = std::min(times.wait_seconds.size(), samples.wait_seconds.size());
  double waited = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    samples.wait_seconds[i] += times.wait_seconds[i];
    waited += times.wait_seconds[i];
  }
  samples.collectives = times.collectives;
  samples.communication_seconds = times.communication_seconds;
  samples.embedding.exchange_seconds = times.table_seconds;
  if (trace_) trace_->add(times.operations);
  if (!taken.waited_in_backward || !std::isfinite(waited)) return;
  samples.phase_seconds[static_cast<std::size_t>(StepPhase::backward)] -= waited;
  samples.phase_seconds[static_cast<std::size_t>(StepPhase::communication)] += waited;
}

at::Tensor MeasuredLoop::train_step(long number, std::size_t turn,
                                    const std::vector<Batch>& micro_batches) {
  if (!recorder_ || fault_.nan_loss(number)) return give_step(number, turn, micro_batches);
  set_learning_rate(number);
  enter(StepPhase::rest);  // the phases of a step that is repeated have no times of their own
  recorder_->repeat(turn);
  return recorded_loss_[turn];
}

void MeasuredLoop::record_steps() {
  if (!trainer_.records_steps) return;
  trainer_.device.release_free_memory();  // a recording has memory of its own
  recorder_ = trainer_.device.make_work_recorder();
  recording_ = true;
  for (std::size_t turn = 0; turn < trainer_.batches.size(); ++turn) {
    at::Tensor loss;
    try {
      recorder_->record(
          [&] { loss = give_step(std::nullopt, turn, input_->take(static_cast<long>(turn))); });
    } catch (const c10::Error& error) {
      throw RunError("--cuda_graph: a step of " + trainer_.config.model + " cannot be recorded: " +
                     error.what_without_backtrace() + "; use --cuda_graph off");
    }
    recorded_loss_.push_back(loss);
  }
  recording_ = false;
}

void MeasuredLoop::set_learning_rate(long number) {
  trainer_.optimizer->set_learning_rate(learns_ ? learning_rate_.at(number) : 0);
}

at::Tensor MeasuredLoop::give_step(std::optional<long> number, std::size_t turn,
                                   const std::vector<Batch>& micro_batches) {
  at::Tensor sum, gradient_scale = gradient_scale_[turn];
  if (scaler_.enabled()) gradient_scale = gradient_scale * scaler_.scale();
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    enter(StepPhase::forward);
    reducer_->begin_pass(i == 0, i + 1 == micro_batches.size());
    if (i == 0) complete_unannounced();
    at::Tensor loss = trainer_.model->loss_sum(micro_batches[i]);
    if (number && fault_.nan_loss(*number)) loss = loss * std::numeric_limits<double>::quiet_NaN();
    complete_updates(StepPhase::forward);  // gradients will be written to where sums are
    enter(StepPhase::backward);
    // In the last pass the reducer starts to sum gradients as they arrive.
    loss.backward(gradient_scale);
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  if (number) set_learning_rate(*number);  // behind updates that the step before has left
  enter(StepPhase::communication);
  update();
  return sum;
}

/// Updates a bucket while later ones are in flight, unless the update depends on all gradients.
/// With --overlap step the update runs in the next step, before the first use of the bucket.
void MeasuredLoop::update() {
  UpdateRule& optimizer = *trainer_.optimizer;
  if (asynchronous_) {
    optimizer.begin_step();
    asynchronous_->start_rest();
    not_updated_.assign(not_updated_.size(), true);
    return;
  }
  if (!trainer_.config.clip_norm && !scaler_.enabled()) {
    optimizer.begin_step();
    reducer_->finalize([&](std::size_t i) {
      enter(StepPhase::optimizer);
      update_bucket(i);
      enter(StepPhase::communication);
    });
    return;
  }
  reducer_->finalize();
  enter(StepPhase::optimizer);
  std::vector<Bucket>& buckets = reducer_->buckets();
  at::Tensor skip;
  const auto over_shards = [&](const at::Tensor& sum) { return reducer_->sum_over_shards(sum); };
  if (scaler_.enabled()) skip = scaler_.unscale(buckets, over_shards);
  // Reading costs nothing on the CPU, but would stall any other device.
  const bool may_wait = !trainer_.device.works_behind_host();
  if (skip.defined() && may_wait) {
    if (skip.item<float>() != 0) return;
    skip = at::Tensor();
  }
  if (trainer_.config.clip_norm)
    clip_gradients(buckets, *trainer_.config.clip_norm, trainer_.model->operators(), may_wait,
                   over_shards);
  optimizer.begin_step(skip);
  for (std::size_t i = 0; i < buckets.size(); ++i) update_bucket(i);
}

void MeasuredLoop::update_bucket(std::size_t bucket) {
  trainer_.optimizer->update(reducer_->buckets()[bucket]);
  reducer_->updated(bucket);
}

void MeasuredLoop::complete_update(std::size_t bucket, StepPhase next) {
  if (!not_updated_[bucket]) return;
  const auto complete = [&](std::size_t i) {
    not_updated_[i] = false;
    enter(StepPhase::communication);
    asynchronous_->wait(i);
    enter(StepPhase::optimizer);
    trainer_.optimizer->update(reducer_->buckets()[i]);
  };
  // While the sum of this bucket is in flight, those buckets are updated whose sums are complete.
  for (std::size_t i = 0; i < not_updated_.size() && !asynchronous_->is_complete(bucket); ++i)
    if (i != bucket && not_updated_[i] && asynchronous_->is_complete(i)) complete(i);
  complete(bucket);
  enter(next);
}

void MeasuredLoop::complete_updates(StepPhase next) {
  for (std::size_t i = 0; i < not_updated_.size(); ++i) complete_update(i, next);
}

void MeasuredLoop::settle() {
  complete_updates(StepPhase::rest);
  reducer_->settle();
}

/// Completes the updates of parameters that no layer announces, since they may be read as soon as
/// the forward pass begins.
void MeasuredLoop::complete_unannounced() {
  const std::vector<Bucket>& buckets = reducer_->buckets();
  for (std::size_t i = 0; i < not_updated_.size(); ++i)
    if (buckets[i].first_use < 0) complete_update(i, StepPhase::forward);
}

at::Tensor MeasuredLoop::forward_step(long number, const Batch& batch) {
  const at::NoGradGuard no_grad;
  enter(StepPhase::forward);
  at::Tensor loss = trainer_.model->loss_sum(batch);
  if (fault_.nan_loss(number)) loss = loss * std::numeric_limits<double>::quiet_NaN();
  return loss;
}

/// Runs passes without an update, in which cuDNN and cuBLAS choose their kernels for each shape.
void MeasuredLoop::meet_shapes() {
  if (!trainer_.must_meet_shapes()) return;
  trainer_.shapes_met = true;
  const at::AutoGradMode mode(!trainer_.config.forward_only);
  for (std::size_t i = 0; i < trainer_.batches.size(); ++i)
    for (const Batch& batch : input_->take(static_cast<long>(i))) {
      reducer_->begin_pass(/*first=*/true, /*last=*/false);
      const at::Tensor loss = trainer_.model->loss_sum(batch);
      if (!trainer_.config.forward_only) loss.backward();
    }
  trainer_.device.synchronize();
}

void MeasuredLoop::watch(long first, StepTrace& trace) {
  trace_ = &trace;
  reducer_->keep_operations();
  loop_.watch(first, trace);
}

void Trainer::meet_shapes(RankGroup& group, Communicator& communicator) {
  if (!impl_->must_meet_shapes()) return;  // avoids making a loop that is not used
  MeasuredLoop(*impl_, group, communicator, InjectedFault()).meet_shapes();
}

Samples Trainer::measure(RankGroup& group, Communicator& communicator, const StepObserver& observer,
                         StartBarrier* barrier) {
  Impl& trainer = *impl_;
  MeasuredLoop loop(trainer, group, communicator,
                    InjectedFault(trainer.config.inject, trainer.rank));
  loop.meet_shapes();
  loop.record_steps();
  trainer.restart();
  const Samples warm_up = loop.run(trainer.config.num_warmup_batches, "warm-up",
                                   StoppingRule(std::nullopt, std::nullopt), nullptr);
  Samples samples;
  samples.stop_reason = warm_up.stop_reason;
  if (warm_up.stop_reason == StopReason::num_batches) {
    CheckpointSamples checkpoints;
    loop.set_after_step(checkpoint_writer(trainer, group, checkpoints, loop));
    group.barrier();
    wait_at(barrier, group);
    const double start = steady_seconds();
    samples = loop.run(trainer.config.num_batches, "step",
                       StoppingRule(trainer.config.target_ci, trainer.config.max_seconds,
                                    trainer.config.target_loss),
                       observer, barrier);
    group.watchdog().enter("end of measured loop");
    group.barrier();
    const double end = steady_seconds();
    samples.wall_seconds = end - start - samples.paused_seconds;
    if (barrier) barrier->report({start, end});
    leave(barrier, group);
    samples.warm_up_seconds =
        std::accumulate(warm_up.step_seconds.begin(), warm_up.step_seconds.end(), 0.0);
    samples.checkpoints = std::move(checkpoints);
  }
  trainer.traffic = loop.traffic();
  const double broken = trainer.parameters->weights_are_finite() ? 0 : 1;
  if (group.all_sum({broken}).front() > 0) samples.stop_reason = StopReason::non_finite;
  return samples;
}

Samples Trainer::trace(RankGroup& group, Communicator& communicator, std::int64_t steps,
                       StepTrace& trace) {
  Impl& trainer = *impl_;
  MeasuredLoop loop(trainer, group, communicator,
                    InjectedFault(trainer.config.inject, trainer.rank));
  loop.record_steps();
  const StoppingRule never(std::nullopt, std::nullopt);
  // c10d rebuilds its buckets after the first step.
  loop.run(kUnrecordedSteps, "before the trace", never, nullptr);
  trace.begin(group);
  loop.watch(static_cast<long>(trainer.config.num_warmup_batches + trainer.config.num_batches),
             trace);
  Samples samples = loop.run(steps, "traced step", never, nullptr);
  trace.end(group);
  return samples;
}

double Trainer::calibrate(RankGroup& group) {
  Impl& trainer = *impl_;
  trainer.restart();
  const auto communicator = make_communicator(CommunicatorKind::none, group, -1);
  MeasuredLoop loop(trainer, group, *communicator, InjectedFault());
  loop.meet_shapes();
  loop.record_steps();
  const Samples samples =
      loop.run(2, "calibration", StoppingRule(std::nullopt, std::nullopt), nullptr);
  const double mine = samples.step_seconds.empty() ? 0 : samples.step_seconds.back();
  return group.all_sum({mine}).front() / group.size();
}

}  // namespace scalemark
