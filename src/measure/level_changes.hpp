// Changes of level in values that were measured one after the other, few as they may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "measure/permutation.hpp"

namespace scalemark {

/// Values that it takes to call them a level: a single odd one is none.
inline constexpr std::size_t kLeastSegment = 2;
/// Changes that are looked for at a time; a part between them is looked through again.
inline constexpr std::size_t kMostChanges = 4;

/// Values in parts of one level each.
struct Division {
  std::vector<std::size_t> firsts;  ///< of every part but the first, ascending
  double residual = 0;              ///< sum of squares around the means of the parts
};

/// Of 0, 1, ... kMostChanges changes, as far as parts of kLeastSegment values allow, the division
/// with the least residual (dynamic programming, Auger and Lawrence 1989).
std::vector<Division> best_divisions(std::span<const double> values);

/// Tests that values are normal noise around one level. Of each number of changes m: what the best
/// division explains over what it leaves, (R_0 - R_m) / R_m, which depends on the number of values
/// alone and not on their variance; p is the share of drawn rows whose most striking m is as
/// striking. Keeps what it has drawn, so that one object serves many rows.
class ChangeTest {
 public:
  explicit ChangeTest(int draws = kDrawnAssignments, std::uint64_t seed = 1)
      : draws_(draws), seed_(seed) {}

  /// `least_variance`: below which that of a value can't be, however alike they are; only ever
  /// raises p. 1 below 2 x kLeastSegment values.
  double p(std::span<const double> values, double least_variance = 0);

  /// The least step in the middle of n values, in standard deviations of one, that is found at
  /// level `alpha` with probability `power` (by simulation).
  double smallest_step(std::size_t n, double alpha, double power);

 private:
  struct Null {
    std::vector<std::vector<double>> explained;  ///< [m - 1], ascending
    std::vector<double> least_p;                 ///< over m, ascending
  };
  const Null& null_of(std::size_t n);
  double power_at(std::size_t n, double step, double alpha);

  int draws_;
  std::uint64_t seed_;
  std::map<std::size_t, Null> nulls_;
};

/// Where levels begin, ascending: the fewest changes between which the test finds no other at
/// `alpha`. Rows without a change have none in at least 1 - alpha of cases.
std::vector<std::size_t> find_levels(std::span<const double> values, double alpha,
                                     double least_variance, ChangeTest& test);

}  // namespace scalemark
