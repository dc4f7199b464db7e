// When a measured loop may end before --num_batches: the precision asked for is reached, the loss
// has come down to a target, or the time is up. Apart from the loop so that it can be tested, and
// from the agreement of the ranks (comm/rank_group.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "measure/samples.hpp"

namespace scalemark {

class StoppingRule {
 public:
  /// `target_ci`: stop when the half width of the 95 % interval of the mean step is at most this
  /// fraction of the mean. `max_seconds`: stop after this time. `target_loss`: stop when the
  /// median of the last 5 losses is at most this. Unset: never for that reason.
  StoppingRule(std::optional<double> target_ci, std::optional<double> max_seconds,
               std::optional<double> target_loss = std::nullopt);

  /// Call after every step with all measured steps so far and the seconds since the loop began. The
  /// interval is looked at after 50 steps, then each time the number of steps has grown by a
  /// quarter: looking after every step would be slow, and would stop at the luckiest moment
  /// (coverage under this rule: docs/coverage.md).
  std::optional<StopReason> check(std::span<const double> step_seconds, double elapsed_seconds);

  /// Call whenever the loss of another step is known, with all of them. Ranks that know the same
  /// losses decide alike.
  std::optional<StopReason> check_loss(std::span<const double> losses) const;

 private:
  std::optional<double> target_ci_, max_seconds_, target_loss_;
  std::size_t next_look_ = 50;
};

// When a training has come down to a target loss (docs/measurements.md).

/// One low loss may be luck; their median decides.
inline constexpr std::size_t kTargetLossSteps = 5;

/// True where the median of the last 5 losses is at most `target`; false for fewer than 5.
bool reaches_loss(std::span<const double> losses, double target);

/// The number of steps after which that is first so: 5 to their number; nullopt: never.
std::optional<std::size_t> steps_to_loss(std::span<const double> losses, double target);

// Whether a loss trace diverged: the training went wrong although every number is finite.

inline constexpr std::size_t kLevelWindow = 20;      ///< steps whose median is a level
inline constexpr double kDivergenceScore = 10;       ///< a score above it is a divergence
inline constexpr double kLeastNoiseFraction = 0.01;  ///< of the first level: the least noise

/// Robust z-score of the end of a trace against its best level: (last level - best level) / noise.
/// - level: median of 20 steps; the last level is that of the last 20 steps, the best the lowest of
///   windows that begin at every tenth step and end before those;
/// - noise, the largest of: 1.4826 MAD of the best window; 1.4826 median |x[i+1] - x[i]| / sqrt(2),
///   which a trend does not inflate; 1 % of |first level|, so that a flat trace has some.
/// 0 below 40 steps, for a constant trace and where the end is the best; infinite where a value is
/// not finite.
double divergence_score(std::span<const double> loss);

/// divergence_score() > 10. False alarms and what is found: docs/measurements.md.
bool diverged(std::span<const double> loss);

}  // namespace scalemark
