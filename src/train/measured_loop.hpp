// Internal to train/: the loop of training (or forward) steps that warm-up and measurement share.
#pragma once

#include "config/learning_rate.hpp"
#include "measure/stopping.hpp"
#include "train/injection.hpp"
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
  struct Phase;  ///< the state of one run()

  std::size_t turn() const;  ///< index of this step's batch
  at::Tensor train_step();
  at::Tensor forward_step();
  std::vector<double> words(Phase& phase, std::optional<double> loss_sum) const;
  std::optional<StopReason> read(Phase& phase, const std::vector<double>& sums) const;

  Trainer::Impl& trainer_;
  RankGroup& group_;
  GradientReducer reducer_;
  InjectedFault fault_;
  LearningRate learning_rate_;
  at::Tensor loss_scale_;  ///< 1 / (loss count of all ranks whose gradients are summed)
  long step_ = 0;          ///< from the first warm-up step
};

}  // namespace scalemark
