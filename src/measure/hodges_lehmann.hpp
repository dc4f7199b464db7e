// Hodges-Lehmann estimates of a centre and of a shift, with the intervals of the rank tests that
// belong to them (Hodges and Lehmann 1963; Hollander, Wolfe and Chicken 2014, sections 3.2, 3.3,
// 4.2, 4.3).
#pragma once

#include <optional>
#include <span>

#include "measure/permutation.hpp"

namespace scalemark {

/// Median of the Walsh averages (x[i] + x[j]) / 2, i <= j: a centre that outliers hardly move. NaN
/// for no values.
double hodges_lehmann(std::span<const double> x);
/// Median of all b[j] - a[i]: the shift from a to b. NaN for no values.
double hodges_lehmann(std::span<const double> a, std::span<const double> b);

/// Order statistics of the Walsh averages by the exact null distribution of Wilcoxon's signed-rank
/// statistic; of the differences by that of the rank sum. At least `confidence`, or the widest
/// where that has at least confidence - kConfidenceSlack; nullopt below. The work grows with the
/// fourth power of the number of values: for launches, not for steps.
std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> x,
                                                     double confidence = 0.95);
std::optional<ExactInterval> hodges_lehmann_interval(std::span<const double> a,
                                                     std::span<const double> b,
                                                     double confidence = 0.95);

}  // namespace scalemark
