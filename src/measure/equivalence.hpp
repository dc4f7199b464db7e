// Whether a difference lies within a margin: two one-sided exact tests (Schuirmann 1987), and how
// many values that takes.
#pragma once

#include <optional>
#include <span>

#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {

/// The larger p of the sign-flip tests that the mean of paired differences lies above margin.lo and
/// below margin.hi. At most alpha: it lies within, by tests of level alpha each. At least 1 value.
double sign_flip_equivalence_p(std::span<const double> differences, const Interval& margin,
                               const CountedAssignments& assignments = {});

/// The same of the shift from a to b by the two-sample permutation test. At least 1 value each.
double permutation_equivalence_p(std::span<const double> a, std::span<const double> b,
                                 const Interval& margin,
                                 const CountedAssignments& assignments = {});

/// The least number of values, of each sample where these are two, at which both one-sided t-tests
/// of level `alpha` refuse with probability `power` if the true difference is 0: the least n with
/// F(hi / e - t) + F(-lo / e - t) - 1 >= power, F Student's distribution, t its 1 - alpha quantile,
/// e the standard error of n values (Phillips 1990, with the central t). `deviation`: of one paired
/// difference, or pooled of one value of a sample. nullopt above a million, or where 0 does not lie
/// within the margin.
std::optional<std::size_t> repeats_for_equivalence(double deviation, bool paired,
                                                   const Interval& margin, double alpha,
                                                   double power);

}  // namespace scalemark
