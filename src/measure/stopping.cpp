// Checks the interval of the mean step at growing numbers of steps.
#include "measure/stopping.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "measure/statistics.hpp"

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

bool reaches_loss(std::span<const double> losses, double target) {
  if (losses.size() < kTargetLossSteps) return false;
  const auto last = losses.last(kTargetLossSteps);
  return std::ranges::all_of(last, [](double loss) { return std::isfinite(loss); }) &&
         median(last) <= target;
}

std::optional<std::size_t> steps_to_loss(std::span<const double> losses, double target) {
  for (std::size_t steps = kTargetLossSteps; steps <= losses.size(); ++steps)
    if (reaches_loss(losses.first(steps), target)) return steps;
  return std::nullopt;
}

namespace {

/// Returns the standard deviation of the noise of `x`, estimated from the differences of
/// neighbours. 1.4826 turns a median absolute value into the standard deviation of normal noise; a
/// difference of two values has sqrt(2) times the standard deviation of one.
double noise_of_differences(std::span<const double> x) {
  std::vector<double> steps;
  steps.reserve(x.size());
  for (std::size_t i = 1; i < x.size(); ++i) steps.push_back(std::abs(x[i] - x[i - 1]));
  return 1.4826 * median(steps) / std::numbers::sqrt2;
}

}  // namespace

double divergence_score(std::span<const double> loss) {
  if (!std::all_of(loss.begin(), loss.end(), [](double x) { return std::isfinite(x); }))
    return std::numeric_limits<double>::infinity();
  if (loss.size() < 2 * kLevelWindow) return 0;
  const double first = median(loss.first(kLevelWindow)), last = median(loss.last(kLevelWindow));
  double best = first;
  std::span<const double> best_window = loss.first(kLevelWindow);
  for (std::size_t begin = kLevelWindow / 2; begin + 2 * kLevelWindow <= loss.size();
       begin += kLevelWindow / 2) {
    const auto window = loss.subspan(begin, kLevelWindow);
    const double level = median(window);
    if (level < best) {
      best = level;
      best_window = window;
    }
  }
  if (last <= best) return 0;
  const double noise =
      std::max({median_absolute_deviation_scaled(best_window), noise_of_differences(loss),
                kLeastNoiseFraction * std::abs(first)});
  return (last - best) / noise;
}

bool diverged(std::span<const double> loss) { return divergence_score(loss) > kDivergenceScore; }

}  // namespace scalemark
