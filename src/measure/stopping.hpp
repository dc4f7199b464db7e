// Decides when a measured loop may end before --num_batches: the requested precision is reached,
// the loss has come down to a target, or the time is up. It is separate from the loop so that it
// can be tested, and from the agreement of the ranks (comm/rank_group.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "measure/samples.hpp"

namespace scalemark {

/// Decides after each step whether the loop may end.
class StoppingRule {
 public:
  /// With `target_ci`, stops when the half width of the 95 % interval of the mean step is at most
  /// this fraction of the mean. With `max_seconds`, stops after this time. With `target_loss`,
  /// stops when the median of the last 5 losses is at most this. An unset value never stops the
  /// loop.
  StoppingRule(std::optional<double> target_ci, std::optional<double> max_seconds,
               std::optional<double> target_loss = std::nullopt);

  /// Returns a reason to stop, if there is one. Call it after every step with all measured steps so
  /// far and the seconds since the loop began. The interval is checked after 50 steps, then each
  /// time the number of steps has grown by a quarter: checking after every step would be slow, and
  /// would stop at the luckiest moment (docs/coverage.md states the coverage under this rule).
  std::optional<StopReason> check(std::span<const double> step_seconds, double elapsed_seconds);

  /// Returns a reason to stop, if there is one. Call it whenever the loss of another step is known,
  /// with all of them. Ranks that know the same losses decide alike.
  std::optional<StopReason> check_loss(std::span<const double> losses) const;

 private:
  std::optional<double> target_ci_, max_seconds_, target_loss_;
  std::size_t next_look_ = 50;
};

// Determines when a training has come down to a target loss (docs/measurements.md).

/// The median of this many losses decides, since a single low loss may be chance.
inline constexpr std::size_t kTargetLossSteps = 5;

/// Returns true where the median of the last 5 losses is at most `target`, and false for fewer than
/// 5 losses.
bool reaches_loss(std::span<const double> losses, double target);

/// Returns the number of steps after which reaches_loss() is true for the first time, or nullopt
/// where it never is.
std::optional<std::size_t> steps_to_loss(std::span<const double> losses, double target);

// Decides whether a loss trace diverged, that is whether the training went wrong although every
// number is finite.

inline constexpr std::size_t kLevelWindow = 20;      ///< steps whose median is a level
inline constexpr double kDivergenceScore = 10;       ///< a score above it is a divergence
inline constexpr double kLeastNoiseFraction = 0.01;  ///< least noise / first level

/// Returns a robust z-score of the end of a trace against its best level: (last level - best level)
/// / noise.
/// - A level is the median of 20 steps. The last level is that of the last 20 steps; the best is
/// the
///   lowest of the windows that begin at every tenth step and end before those.
/// - The noise is the largest of three: 1.4826 MAD of the best window; 1.4826 median
///   |x[i+1] - x[i]| / sqrt(2), which a trend does not inflate; 1 % of |first level|, so that a
///   flat trace has some.
/// The score is 0 below 40 steps, for a constant trace and where the end is the best. It is
/// infinite where a value is not finite.
double divergence_score(std::span<const double> loss);

/// Returns true where divergence_score() is above 10. docs/measurements.md states the rates of
/// false alarms and of detection.
bool diverged(std::span<const double> loss);

}  // namespace scalemark
