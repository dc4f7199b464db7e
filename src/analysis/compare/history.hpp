// Where a row of result sets, one a commit, changed its level: advice, no verdict. Pure functions;
// docs/gate.md ("History").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"

namespace scalemark {

/// Sets on either side of a change that it takes to call it one: a single odd set is none.
inline constexpr std::size_t kLeastSegment = 2;

struct ChangePoint {
  std::size_t first;  ///< index of the first value of the new level
  double p;  ///< permutation test of the values around it, before they were divided further
};

/// Binary segmentation: the division with the largest sqrt(k (n - k) / n) |difference of means| of
/// a segment of n values is a change where at most `alpha` of all orders of these values have a
/// larger one (a seeded sample of 9,999); then both parts are searched. Ascending. Values of one
/// level must be exchangeable: drift of the machine counts as a change too.
std::vector<ChangePoint> find_changes(std::span<const double> values, double alpha,
                                      std::uint64_t seed = 1);

struct History {
  std::vector<double> levels;  ///< of each set: mean over common points of the mean log rate
  std::vector<double> rates;   ///< geometric mean over these points, relative to the first set
  std::vector<ChangePoint> changes;
  std::vector<double> percent;  ///< of each change: the new level against the one before
  std::size_t points = 0;       ///< that all sets have
};

/// ConfigError below 2 x kLeastSegment sets or where no point is common to all.
History find_history(const std::vector<ResultSet>& sets, const Matching& matching, double alpha);

/// What docs/schema/history.schema.json asks for.
Json make_history_record(const std::vector<ResultSet>& sets, const History& history, double alpha,
                         const std::vector<std::string>& notes,
                         const std::vector<std::string>& warnings);

}  // namespace scalemark
