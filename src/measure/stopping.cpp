// Looks at the interval of the mean step at growing numbers of steps.
#include "measure/stopping.hpp"

#include "measure/statistics.hpp"
#include "measure/target_loss.hpp"

namespace scalemark {

StoppingRule::StoppingRule(std::optional<double> target_ci, std::optional<double> max_seconds,
                           std::optional<double> target_loss)
    : target_ci_(target_ci), max_seconds_(max_seconds), target_loss_(target_loss) {}

std::optional<StopReason> StoppingRule::check_loss(std::span<const double> losses) const {
  if (target_loss_ && reaches_loss(losses, *target_loss_)) return StopReason::target_loss;
  return std::nullopt;
}

std::optional<StopReason> StoppingRule::check(std::span<const double> step_seconds,
                                              double elapsed_seconds) {
  if (max_seconds_ && elapsed_seconds >= *max_seconds_) return StopReason::max_seconds;
  if (!target_ci_ || step_seconds.size() < next_look_) return std::nullopt;
  next_look_ = step_seconds.size() + step_seconds.size() / 4;
  const auto interval = mean_interval(step_seconds);
  if (!interval) return std::nullopt;
  const double half_width = (interval->hi - interval->lo) / 2;
  if (half_width <= *target_ci_ * mean(step_seconds)) return StopReason::target_ci;
  return std::nullopt;
}

}  // namespace scalemark
