// Permutation tests of several series at once, whose repeats belong together: a point of a gate
// each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace scalemark {

// Several series under one level: their mean finds what all share, the smallest of them what one
// alone lost.

/// [series][repeat], all of one length: the log ratios of each point of a gate.
using Series = std::vector<std::vector<double>>;
/// Of each repeat the mean over the series.
std::vector<double> mean_of_series(const Series& series);

/// Two statistics of each assignment (of signs, or of values to two sides).
struct JointStatistics {
  std::vector<double> mean;      ///< of the mean series, standardised
  std::vector<double> smallest;  ///< the smallest of the standardised series

  std::size_t size() const { return mean.size(); }
};

/// The order in which assignments speak against "no series fell": the smallest mean, the smallest
/// series, the second smallest mean, and so on (the union of two tests, Tippett 1931, each with
/// half of the level). [i] is how many of all come no later than assignment i, right where that is
/// at most `most`; those that are equal but for rounding come together. So places <= k are at most
/// k.
std::vector<std::size_t> joint_places(const JointStatistics& statistics, std::size_t most);

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

// Sign-flip tests that may look at the data several times while they come.

/// A look after `pairs` differences, by which at most a share `spent` of false refusals may have
/// happened (this look and all before it: alpha spending, Lan and DeMets 1983).
struct SequentialLook {
  std::size_t pairs;
  double spent;
};

/// Pairs that the last look may have: 2^pairs assignments of signs are listed.
inline constexpr std::size_t kMostSequentialPairs = 22;

/// The first look (index) at which "symmetric around 0 in every series" is refused in favour of
/// smaller values; nullopt where none of those that the differences are enough for does. Given the
/// magnitudes, all 2^n assignments of signs, one for all series of a pair, are alike under the null
/// hypothesis. They are followed through the looks together: at each, the first of joint_places()
/// among those not refused before are refused, as many as the level allows, ties left out. So the
/// chance of a false refusal at any look is at most the last `spent`, exactly, where the
/// differences are symmetric, and assignments that an early look refuses are not paid for again
/// later. Magnitudes are winsorised at each look. Throws std::invalid_argument where looks do not
/// ascend or go beyond kMostSequentialPairs, or series are unlike in length.
std::optional<std::size_t> first_refusal(const Series& differences,
                                         const std::vector<SequentialLook>& looks);

}  // namespace scalemark
