// Several series under one level: their mean finds what all share, the smallest of them what one
// alone lost.
#pragma once

#include <cstddef>
#include <vector>

namespace scalemark {

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

}  // namespace scalemark
