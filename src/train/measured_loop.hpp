// Internal to train/: the loop of training (or forward) steps that warm-up and measurement share.
#pragma once

#include "train/step_loop.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {

class MeasuredLoop {
 public:
  MeasuredLoop(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator,
               const InjectedFault& fault);

  /// Up to `steps` steps under the watchdog's phase `phase` (a literal); wall_seconds is left to
  /// the caller.
  Samples run(long steps, const char* phase, StoppingRule rule, const StepObserver& observer);

 private:
  /// `number`: from the first warm-up step.
  at::Tensor train_step(long number);
  at::Tensor forward_step(long number);

  Trainer::Impl& trainer_;
  GradientReducer reducer_;
  InjectedFault fault_;
  StepLoop loop_;
  at::Tensor loss_scale_;  ///< 1 / (loss count of all ranks whose gradients are summed)
};

}  // namespace scalemark
