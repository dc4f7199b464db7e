// Internal to train/: the loop of training (or forward) steps that warm-up and measurement share.
#pragma once

#include "config/learning_rate.hpp"
#include "train/input_pipeline.hpp"
#include "train/loss_scaler.hpp"
#include "train/step_loop.hpp"
#include "train/step_reducer.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {

class MeasuredLoop {
 public:
  MeasuredLoop(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator,
               const InjectedFault& fault);
  ~MeasuredLoop();

  /// Passes over every batch before the first step, on a device that chooses its kernels by shape.
  void meet_shapes();
  /// Up to `steps` steps under the watchdog's phase `phase` (a literal). Step numbers go on from
  /// run to run. wall_seconds is left to the caller.
  Samples run(long steps, const char* phase, StoppingRule rule, const StepObserver& observer,
              StartLine* line = nullptr);
  /// The runs to come are recorded by `trace`; their steps are numbered from `first`.
  void watch(long first, StepTrace& trace);
  /// The weights are those after the last step from here on. Where steps run on, its updates may be
  /// left to the next one; then `next` is the phase after them.
  void complete_updates(StepPhase next);
  double loss_scale() const { return scaler_.enabled() ? scaler_.report().last : 1; }
  StepTraffic traffic() const { return reducer_->traffic(); }

  /// Called inside every step to come, after its update, with its number.
  void set_after_step(std::function<void(long number)> after_step) {
    after_step_ = std::move(after_step);
  }

 private:
  /// `number`: from the first warm-up step; `turn`: index of its batch, whose parts are
  /// `micro_batches`. The loss is the sum over this rank's batch.
  at::Tensor train_step(long number, std::size_t turn, const std::vector<Batch>& micro_batches);
  at::Tensor forward_step(long number, const Batch& batch);
  void update();
  /// Where steps run on: before anything reads the bucket's weights.
  void complete_update(std::size_t bucket, StepPhase next);
  void complete_unannounced();
  /// What the reducer took down of the steps of `samples`.
  void add_communication(Samples& samples);

  Trainer::Impl& trainer_;
  std::unique_ptr<StepReducer> reducer_;
  InjectedFault fault_;
  StepLoop loop_;
  LearningRate learning_rate_;
  LossScaler scaler_;
  std::unique_ptr<InputPipeline> input_;
  std::function<void(long number)> after_step_ = [](long) {};
  StepTrace* trace_ = nullptr;     ///< null: nobody
  std::vector<bool> not_updated_;  ///< by bucket: the last step's update is still to come
  // By turn, since batches may hold different numbers of tokens:
  std::vector<at::Tensor>
      gradient_scale_;                  ///< 1 / (loss count of ranks whose gradients are summed)
  std::vector<at::Tensor> loss_share_;  ///< 1 / (loss count of all ranks)
};

}  // namespace scalemark
