// When a measured loop may end before --num_batches: the precision asked for is reached, the loss
// has come down to a target, or the time is up. Apart from the loop so that it can be tested, and
// from the agreement of the ranks (comm/rank_group.hpp).
#pragma once

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

}  // namespace scalemark
