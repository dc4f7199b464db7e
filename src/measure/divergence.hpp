// Whether a loss trace diverged: the training went wrong although every number is finite.
#pragma once

#include <cstddef>
#include <span>

namespace scalemark {

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
