// Runs the loop of training (or forward) steps that warm-up and measurement share. Internal to
// train/.
#pragma once

#include "config/learning_rate.hpp"
#include "train/input_pipeline.hpp"
#include "train/loss_scaler.hpp"
#include "train/step_loop.hpp"
#include "train/step_reducer.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {

/// Trains with one communicator and returns the samples of each run.
class MeasuredLoop {
 public:
  MeasuredLoop(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator,
               const InjectedFault& fault);
  ~MeasuredLoop();

  /// Runs passes over every batch before the first step, on a device that chooses its kernels by
  /// shape.
  void meet_shapes();
  /// With --cuda_graph, records the step of every batch, which run() then repeats: the host gives
  /// the device one graph a step. Throws RunError where a step cannot be recorded.
  void record_steps();
  /// Runs up to `steps` steps under the watchdog's phase `phase` (a literal). Step numbers continue
  /// from run to run. The caller sets wall_seconds.
  Samples run(long steps, const char* phase, StoppingRule rule, const StepObserver& observer,
              StartBarrier* barrier = nullptr);
  /// Makes `trace` record the following runs, whose steps are numbered from `first`.
  void watch(long first, StepTrace& trace);
  /// Completes all updates, so that the weights are those after the last step. With --overlap step,
  /// updates may be left to the next step. `next` is the phase after them.
  void complete_updates(StepPhase next);
  /// Completes them and whatever else steps leave to the next one.
  void settle();
  double loss_scale() const { return scaler_.enabled() ? scaler_.report().last : 1; }
  /// Returns what each step of the last run sent.
  StepTraffic traffic() const { return traffic_; }

  /// Sets a function that is called inside every following step, after its update, with the number
  /// of the step.
  void set_after_step(std::function<void(long number)> after_step) {
    after_step_ = std::move(after_step);
  }

 private:
  /// Runs one step. `number` counts from the first warm-up step; `turn` is the index of its batch,
  /// whose parts are `micro_batches`. Returns the loss as the sum over this rank's batch.
  at::Tensor train_step(long number, std::size_t turn, const std::vector<Batch>& micro_batches);
  /// Gives the device a step of training. Without a number it is one to be recorded, which reads
  /// the learning rate of whichever step repeats it.
  at::Tensor give_step(std::optional<long> number, std::size_t turn,
                       const std::vector<Batch>& micro_batches);
  void set_learning_rate(long number);
  at::Tensor forward_step(long number, const Batch& batch);
  void update();
  void update_bucket(std::size_t bucket);
  void enter(StepPhase phase) {
    if (recording_) return;
    phase_ = phase;
    loop_.enter(phase);
  }
  /// Completes the update of a bucket before anything reads its weights, with --overlap step.
  void complete_update(std::size_t bucket, StepPhase next);
  void complete_unannounced();
  /// Adds what the reducer recorded of the steps of `samples`.
  void add_communication(Samples& samples);

  Trainer::Impl& trainer_;
  std::unique_ptr<StepReducer> reducer_;
  AsynchronousReducer* asynchronous_;  ///< the same; null: no step continues without its sums
  StepTraffic traffic_;
  InjectedFault fault_;
  StepLoop loop_;
  StepPhase phase_ = StepPhase::rest;  ///< what the step is in, where it does not wait
  LearningRate learning_rate_;
  bool learns_ = true;  ///< false: weights stay, since ranks do not have those of others
  LossScaler scaler_;
  std::unique_ptr<InputPipeline> input_;
  std::function<void(long number)> after_step_ = [](long) {};
  StepTrace* trace_ = nullptr;              ///< null: nobody
  std::unique_ptr<WorkRecorder> recorder_;  ///< null: steps are not recorded
  bool recording_ = false;                  ///< nothing is done, and no phase begins
  std::vector<bool> not_updated_;           ///< by bucket: the update of the last step is pending
  // The members below are indexed by turn, since batches may hold different numbers of tokens.
  std::vector<at::Tensor>
      gradient_scale_;                     ///< 1 / (loss count of ranks whose gradients are summed)
  std::vector<at::Tensor> loss_share_;     ///< 1 / (loss count of all ranks)
  std::vector<at::Tensor> recorded_loss_;  ///< what train_step() returns, once repeated
};

}  // namespace scalemark
