// Defines the learning rate of every step, by what `--lr_schedule` says: as text and as a function
// of the step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// The number of images in ImageNet's training set, which is the epoch of a piecewise schedule, as
/// in tf_cnn_benchmarks.
inline constexpr std::int64_t kImagesPerEpoch = 1'281'167;

/// Returns "constant", "polynomial" and "vaswani".
const std::vector<std::string>& lr_schedule_words();

/// Parses one of the words, or tf_cnn_benchmarks' piecewise form LR0;E1;LR1;...;En;LRn: LRi holds
/// from epoch Ei on, epochs counted from 0. `100s` instead of an epoch is a step. Throws
/// ConfigError without a place.
LearningRateSchedule parse_lr_schedule(std::string_view text);

/// Returns a text that parse_lr_schedule() reads back.
std::string to_string(const LearningRateSchedule& schedule);

/// Computes the rate as a pure function of the step, so that all ranks get the same without
/// communication.
class LearningRate {
 public:
  /// `config` must have been loaded without an error. `global_batch_size`, in samples, turns epochs
  /// into steps.
  LearningRate(const ResolvedConfig& config, std::int64_t global_batch_size);

  /// Of `step` 0, 1, ..., counted from the first warm-up step of the run. With w =
  /// lr_warmup_steps, r = init_learning_rate, T = lr_decay_steps, and a = min(1, (step + 1) / w)
  /// (1 without a warm-up):
  /// - constant: a r.
  /// - piecewise: a LRi; LRi begins at step floor(Ei x 1,281,167 / global batch).
  /// - polynomial: r (step + 1) / w for step < w, then lr_end + (r - lr_end) (1 - (step - w) / (T -
  ///   w))^lr_power, lr_end from T on (torch.optim.lr_scheduler.PolynomialLR where w = 0).
  /// - vaswani: r min((step + 1) / w, sqrt(w / (step + 1))), which with r = (d_model w)^-0.5 is
  ///   equation 3 of Vaswani et al. 2017.
  double at(std::int64_t step) const;

 private:
  double piecewise(std::int64_t step) const;
  double polynomial(std::int64_t step) const;

  LearningRateSchedule schedule_;  ///< boundaries in steps
  double initial_, end_, power_, warm_up_, decay_;
};

}  // namespace scalemark
