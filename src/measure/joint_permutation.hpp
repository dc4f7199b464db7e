// Provides permutation tests of several series whose repeats belong together. In a gate, each point
// is a series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace scalemark {

// Tests several series under one level. Their mean detects what all of them share, the smallest of
// them what only one of them lost.

/// Values indexed by [series][repeat], with all series of one length, for example the log ratios of
/// each point of a gate.
using Series = std::vector<std::vector<double>>;
/// Returns for each repeat the mean over the series.
std::vector<double> mean_of_series(const Series& series);

/// Holds two statistics of each assignment of signs, or of values to two sides.
struct JointStatistics {
  std::vector<double> mean;      ///< statistic of the mean series, standardised
  std::vector<double> smallest;  ///< the smallest of the standardised series

  std::size_t size() const { return mean.size(); }
};

/// Ranks assignments by how much they speak against "no series fell": the smallest mean, the
/// smallest series, the second smallest mean, and so on (the union of two tests, Tippett 1931, each
/// with half of the level). Element [i] is the number of assignments that come no later than
/// assignment i. It is exact where it is at most `most`. Assignments that are equal except for
/// rounding share a place. Hence at most k assignments have a place of at most k.
std::vector<std::size_t> joint_places(const JointStatistics& statistics, std::size_t most);

/// Up to this number of assignments all are listed. Beyond it, a seeded sample of kDrawnAssignments
/// is used.
inline constexpr std::size_t kMostListedAssignments = 65'536;

/// The result of a test of several series. That of a single series is its own test, by
/// sign_flip_test() or permutation_test().
struct JointTest {
  double p = 1;  ///< p of "no series fell" by joint_places(), from the mean and the smallest series
  /// Holds one p for each series, adjusted for the number of series: the share of assignments in
  /// which any series is as small as this one (Westfall and Young 1993, single-step maxT), but at
  /// least that of its own test.
  std::vector<double> series_p;
  std::vector<double> own_p;  ///< of each series, by its own test
};

/// Tests, one-sided, whether the differences of pairs are symmetric around 0 in every series. The
/// signs of all series of a pair are flipped together. Values are winsorised, and few pairs are
/// treated, as in sign_flip_test().
JointTest joint_sign_flip_test(const Series& differences, std::uint64_t seed = 1);

/// Tests, one-sided, whether the fresh values are no smaller than the base values. Each repeat is
/// exchanged together with all its series. Other tests are combined as in permutation_test().
JointTest joint_permutation_test(const Series& base, const Series& fresh, std::uint64_t seed = 1);

/// Returns the smallest p that n pairs, or samples of n and m repeats, can give.
double least_joint_sign_flip_p(std::size_t n);
double least_joint_permutation_p(std::size_t n, std::size_t m);

// Provides sign-flip tests that may look at the data several times while they are collected.

/// A look at the data after `pairs` differences. By the end of this look, at most a share `spent`
/// of false rejections may have happened (alpha spending, Lan and DeMets 1983).
struct SequentialLook {
  std::size_t pairs;
  double spent;
};

/// The last look may have at most this many pairs, since all 2^pairs assignments of signs are
/// listed.
inline constexpr std::size_t kMostSequentialPairs = 22;

/// Returns the index of the first look that rejects "symmetric around 0 in every series" in favour
/// of smaller values. Returns nullopt where no look rejects among those for which there are enough
/// differences.
///
/// Given the magnitudes, all 2^n assignments of signs (one sign for all series of a pair) are
/// equally likely under the null hypothesis. They are followed through the looks together. Each
/// look rejects the first of joint_places() among those not rejected before, as many as the level
/// allows, and leaves ties out. So the chance of a false rejection at any look is at most the last
/// `spent`, exactly, where the differences are symmetric; assignments that an early look rejects
/// are not counted again later. Values are limited at each look by winsorised_magnitudes(), which
/// depends on the magnitudes alone.
///
/// Throws std::invalid_argument where looks do not ascend or go beyond kMostSequentialPairs, or
/// where the series differ in length.
std::optional<std::size_t> first_refusal(const Series& differences,
                                         const std::vector<SequentialLook>& looks);

}  // namespace scalemark
