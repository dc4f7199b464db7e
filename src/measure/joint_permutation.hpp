// Permutation tests of several series at once, whose repeats belong together: a point of a gate
// each.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/joint_order.hpp"

namespace scalemark {

/// Assignments up to which all are listed; beyond, a seeded sample of kDrawnAssignments.
inline constexpr std::size_t kMostListedAssignments = 65'536;

struct JointTest {
  double p = 1;  ///< that no series fell: by joint_places, of the mean and of the smallest series
  /// Of each series, adjusted for their number: the share of assignments in which any series is as
  /// small as this one (Westfall and Young 1993, single-step maxT).
  std::vector<double> series_p;
};

/// One-sided, that the differences of pairs are symmetric around 0 in every series: signs are
/// flipped for all series of a pair together. Winsorised as by sign_flip_test().
JointTest joint_sign_flip_test(const Series& differences, std::uint64_t seed = 1);

/// One-sided, that fresh ones are no smaller than base: repeats are exchanged with all their
/// series.
JointTest joint_permutation_test(const Series& base, const Series& fresh, std::uint64_t seed = 1);

/// The smallest p that n pairs, or samples of n and m repeats, can give.
double least_joint_sign_flip_p(std::size_t n);
double least_joint_permutation_p(std::size_t n, std::size_t m);

}  // namespace scalemark
