// Whether what a run measures rises or falls while it is measured.
#pragma once

#include <optional>
#include <span>

#include "measure/statistics.hpp"

namespace scalemark {

/// Values below which nothing is said.
inline constexpr std::size_t kLeastDrift = 12;
/// As many as a long run is best cut into: more are more alike, fewer tell less.
inline constexpr std::size_t kDriftValues = 60;

struct RunDrift {
  double change = 0;           ///< mean of the last third less that of the first, of that of all
  Interval ci95{0, 0};         ///< of it
  double p = 1;                ///< two-sided, that there is none
  double autocorrelation = 0;  ///< of neighbours, as far as it is positive
};

/// Welch's t of the two thirds with the variance that an autoregressive series of order 1 gives
/// their means. Its variance and autocorrelation r are those of the differences over one and over
/// two places, whose mean squares are as 1 - r to 1 - r^2, without the median difference and the
/// largest ones: so that neither a slope nor a step counts as noise. Degrees of freedom
/// (n / 2 - 1) (1 - r) / (1 + r), at least 2. `values` of equal lengths of time, in their order;
/// nullopt for fewer than kLeastDrift, or where their mean is not above 0.
std::optional<RunDrift> find_drift(std::span<const double> values);

}  // namespace scalemark
