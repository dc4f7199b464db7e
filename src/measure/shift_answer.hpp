// What two sets say of the shift between them at one point: estimate, interval, spreads and slow
// launches together, so that a verdict can be held against all of them.
#pragma once

#include <optional>
#include <span>

#include "measure/permutation.hpp"
#include "measure/slow_launches.hpp"
#include "measure/spreads.hpp"
#include "measure/subsets.hpp"

namespace scalemark {

/// The shift from a base to a new set, of logarithms of rates: below 0 the new set is slower.
struct ShiftAnswer {
  double centre = 0;                      ///< robust: sign_flip_centre() or permutation_centre()
  double bare = 0;                        ///< of the bare means
  std::optional<ExactInterval> interval;  ///< of the robust shift; unset for few values
  std::optional<Spreads> spreads;         ///< of two samples of 5 values or more
  SlowLaunches slow;

  /// Whether the bare mean is slower than any shift of the interval: some launches are so slow that
  /// the robust mean does not tell what all of them together do.
  bool refuted_by_mean() const;
  /// Whether nothing here holds a shift of `slowdown` (below 0) or more for possible: neither the
  /// interval nor the bare mean, and both agree.
  bool excludes(double slowdown) const;
};

/// What is asked of the values.
struct ShiftQuestions {
  double confidence = 0.95;
  double least_slow = 0.02;  ///< least distance by which a launch counts as slow
  CountedAssignments assignments = {};
};

/// Of differences new - base of pairs. There must be at least one.
ShiftAnswer answer_of_pairs(std::span<const double> differences,
                            const ShiftQuestions& questions = {});
/// Of two samples. Each must have at least one value.
ShiftAnswer answer_of_samples(std::span<const double> base, std::span<const double> fresh,
                              const ShiftQuestions& questions = {});

}  // namespace scalemark
