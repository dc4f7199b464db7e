// When a training has come down to a target loss (docs/measurements.md).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace scalemark {

/// One low loss may be luck; their median decides.
inline constexpr std::size_t kTargetLossSteps = 5;

/// True where the median of the last 5 losses is at most `target`; false for fewer than 5.
bool reaches_loss(std::span<const double> losses, double target);

/// The number of steps after which that is first so: 5 to their number; nullopt: never.
std::optional<std::size_t> steps_to_loss(std::span<const double> losses, double target);

}  // namespace scalemark
