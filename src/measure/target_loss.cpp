#include "measure/target_loss.hpp"

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark {

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

}  // namespace scalemark
